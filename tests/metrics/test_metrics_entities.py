"""Entities against seqeval itself, and against conlleval's rules written as loops."""

from __future__ import annotations

import random
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics import sequence_labeling

from bertsmith.errors import ConfigError
from bertsmith.metrics.entities import entity_counts, entity_figures, spans

TYPES = ("PER", "LOC", "A-B")


def conlleval(tags: list[str]) -> list[tuple[str, int, int]]:
    """conlleval's two questions at every border, with a sentinel behind the last tag."""
    found, start = [], 0
    previous, before = "O", ""
    for place, tag in enumerate([*tags, "O"]):
        letter, kind = tag[0], tag[2:]
        changed = kind != before
        ends = previous != "O" and (previous in "ES" or letter in "BSO" or changed)
        begins = letter != "O" and (letter in "BS" or previous in "ESO" or changed)
        if ends:
            found.append((before, start, place))
        if begins:
            start = place
        previous, before = letter, kind
    return found


def ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def figures_of(targets, predictions, reading):
    """(precision, recall, F1) of all and for each type, by sets."""
    wanted = {(row, *span) for row, tags in enumerate(targets) for span in reading(tags)}
    given_ = {(row, *span) for row, tags in enumerate(predictions) for span in reading(tags)}

    def three(kind=None):
        first = {span for span in wanted if kind in (None, span[1])}
        second = {span for span in given_ if kind in (None, span[1])}
        precision = ratio(len(first & second), len(second))
        recall = ratio(len(first & second), len(first))
        return precision, recall, ratio(2 * precision * recall, precision + recall), len(first)

    return three(), {kind: three(kind) for kind in sorted({s[1] for s in wanted | given_})}


def random_texts(rng: random.Random, letters: str) -> tuple[list[list[str]], list[list[str]]]:
    kinds = TYPES[: rng.randint(1, 3)]
    tags = ["O", *(f"{letter}-{kind}" for letter in letters for kind in kinds)]
    lengths = [rng.randint(0, 12) for _ in range(rng.randint(1, 4))]
    targets = [rng.choices(tags, k=length) for length in lengths]
    # Half of the predictions change a few tags only, so that entities agree as well.
    if rng.random() < 0.5:
        return targets, [rng.choices(tags, k=length) for length in lengths]
    return targets, [[rng.choice(tags) if rng.random() < 0.2 else t for t in x] for x in targets]


def test_a_thousand_random_cases_legal_and_illegal_equal_the_rules() -> None:
    rng = random.Random(7)
    agreed = 0
    for case in range(1000):
        targets, predictions = random_texts(rng, "BI" if case % 2 else "BIES")
        counts, types = entity_counts(targets, predictions)
        figures = entity_figures(counts, types)
        micro, by_type = figures_of(targets, predictions, conlleval)
        assert (figures.precision, figures.recall, figures.f1) == pytest.approx(micro[:3])
        assert figures.by_type.keys() == by_type.keys()
        for kind, expected in by_type.items():
            assert figures.by_type[kind] == pytest.approx(expected)
        parts = [each[2] for each in by_type.values()]
        assert figures.macro_f1 == pytest.approx(sum(parts) / len(parts) if parts else 0.0)
        agreed += 0 < figures.f1 < 1
    assert agreed > 200  # the cases are not all trivial


def test_a_thousand_random_cases_equal_seqeval_itself() -> None:
    rng = random.Random(8)
    for case in range(1000):
        targets, predictions = random_texts(rng, "BI" if case % 2 else "BIES")
        counts, types = entity_counts(targets, predictions)
        figures = entity_figures(counts, types)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            micro, macro, each = (
                sequence_labeling.precision_recall_fscore_support(
                    targets, predictions, average=average
                )
                for average in ("micro", "macro" if types else "micro", None)
            )
        assert (figures.precision, figures.recall, figures.f1) == pytest.approx(micro[:3])
        if types:
            assert figures.macro_f1 == pytest.approx(macro[2])
        for number, kind in enumerate(types):
            assert figures.by_type[kind] == pytest.approx([part[number] for part in each])


def test_what_illegal_tags_mean() -> None:
    tags = ["I-PER", "I-PER", "O", "B-LOC", "I-PER", "I-LOC", "I"]
    assert spans(tags) == [("PER", 0, 2), ("LOC", 3, 4), ("PER", 4, 5), ("LOC", 5, 6), ("_", 6, 7)]


@pytest.mark.parametrize(
    ("tags", "bio"),
    [
        ("B-X I-X E-X S-Y O", "B-X I-X I-X B-Y O"),
        ("B-X M-X E-X S-X S-X", "B-X I-X I-X B-X B-X"),
        ("B-X L-X U-Y O", "B-X I-X B-Y O"),
        ("E-X E-X I-X O M-X", "B-X B-X B-X O B-X"),
        ("S B E", "B-_ B-_ I-_"),
    ],
)
def test_other_schemes_mark_the_same_entities_as_bio(tags, bio) -> None:
    assert spans(tags.split()) == spans(bio.split())


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.sampled_from(["O", "B-X", "I-X", "B-Y", "I-Y"])), min_size=1))
def test_perfect_is_one_and_swapping_sides_swaps_precision_and_recall(texts) -> None:
    counts, types = entity_counts(texts, texts)
    figures = entity_figures(counts, types)
    assert figures.f1 == figures.macro_f1 == float(bool(types))
    turned = [tags[::-1] for tags in texts]
    one = entity_figures(*entity_counts(texts, turned))
    two = entity_figures(*entity_counts(turned, texts))
    assert (one.precision, one.recall) == (two.recall, two.precision)
    assert one.f1 == pytest.approx(two.f1)


@pytest.mark.parametrize("tag", ["NN", "BPER", "", "o", "X-PER"])
def test_a_tag_of_no_scheme_is_named(tag) -> None:
    with pytest.raises(ConfigError, match=f"tag '{tag}' is neither"):
        spans(["O", tag])


def test_sides_that_do_not_fit_are_named() -> None:
    with pytest.raises(ConfigError, match="text 1: 2 units, but 1"):
        entity_counts([["O"], ["O", "O"]], [["O"], ["O"]])
