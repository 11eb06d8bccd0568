"""Entities against seqeval itself, and against its rules written as loops."""

from __future__ import annotations

import random
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics import sequence_labeling, v1
from seqeval.scheme import IOB2

from bertsmith.errors import ConfigError
from bertsmith.metrics.entities import (
    entity_counts,
    entity_figures,
    spans,
    strict_spans,
    to_bio,
    written,
)

TYPES = ("PER", "LOC", "A-B")
READINGS = {"default": spans, "strict": strict_spans}


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


def iob2(tags: list[str]) -> list[tuple[str, int, int]]:
    """For every B, as far as I tags of its type reach."""
    found = []
    for place, tag in enumerate(tags):
        if tag[0] == "B":
            end = place + 1
            while end < len(tags) and tags[end] == "I" + tag[1:]:
                end += 1
            found.append((tag[2:], place, end))
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


@pytest.mark.parametrize("mode", READINGS)
def test_a_thousand_random_cases_legal_and_illegal_equal_the_rules(mode) -> None:
    rng = random.Random(7)
    oracle = {"default": conlleval, "strict": iob2}[mode]
    agreed = 0
    for case in range(1000):
        letters = "BI" if mode == "strict" or case % 2 else "BIES"
        targets, predictions = random_texts(rng, letters)
        if case % 4 == 1:
            targets = [to_bio(tags) for tags in targets]
        counts, types = entity_counts(targets, predictions, READINGS[mode])
        found = entity_figures(counts, types)
        micro, by_type = figures_of(targets, predictions, oracle)
        assert (found.precision, found.recall, found.f1) == pytest.approx(micro[:3])
        assert found.by_type.keys() == by_type.keys()
        for kind, expected in by_type.items():
            assert found.by_type[kind] == pytest.approx(expected)
        for number, macro in enumerate((found.macro_precision, found.macro_recall, found.macro_f1)):
            parts = [each[number] for each in by_type.values()]
            assert macro == pytest.approx(sum(parts) / len(parts) if parts else 0.0)
        agreed += 0 < found.f1 < 1
    assert agreed > 200  # the cases are not all trivial


@pytest.mark.parametrize("mode", READINGS)
def test_a_thousand_random_cases_equal_seqeval_itself(mode) -> None:
    rng = random.Random(8)
    for case in range(1000):
        letters = "BI" if mode == "strict" or case % 2 else "BIES"
        targets, predictions = random_texts(rng, letters)
        counts, types = entity_counts(targets, predictions, READINGS[mode])
        found = entity_figures(counts, types)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            micro, macro, each = (
                v1.precision_recall_fscore_support(
                    targets, predictions, average=average, scheme=IOB2
                )
                if mode == "strict"
                else sequence_labeling.precision_recall_fscore_support(
                    targets, predictions, average=average
                )
                for average in ("micro", "macro" if types else "micro", None)
            )
        assert (found.precision, found.recall, found.f1) == pytest.approx(micro[:3])
        if types:
            found_macro = (found.macro_precision, found.macro_recall, found.macro_f1)
            assert found_macro == pytest.approx(macro[:3])
        for number, kind in enumerate(types):
            assert found.by_type[kind] == pytest.approx([part[number] for part in each])


def test_what_the_two_readings_make_of_illegal_tags() -> None:
    tags = ["I-PER", "I-PER", "O", "B-LOC", "I-PER", "I-LOC", "I"]
    assert spans(tags) == [("PER", 0, 2), ("LOC", 3, 4), ("PER", 4, 5), ("LOC", 5, 6), ("_", 6, 7)]
    assert strict_spans(tags) == [("LOC", 3, 4)]


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
def test_other_schemes_become_bio(tags, bio) -> None:
    assert to_bio(tags.split()) == bio.split()


TAGS = st.lists(
    st.sampled_from(["O", *(f"{a}-{k}" for a in "BIESMLU" for k in ("X", "Y-Z"))]), max_size=15
)


@settings(max_examples=200, deadline=None)
@given(TAGS)
def test_conversion_keeps_the_entities_and_is_legal(tags) -> None:
    bio = to_bio(tags)
    assert len(bio) == len(tags)
    assert spans(bio) == strict_spans(bio) == spans(tags)
    assert to_bio(bio) == bio == written(spans(tags), len(tags))


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
    with pytest.raises(ConfigError, match="text 1: 2 units stand against 1"):
        entity_counts([["O"], ["O", "O"]], [["O"], ["O"]])
    with pytest.raises(ConfigError, match="convert it with to_bio"):
        strict_spans(["S-PER"])
