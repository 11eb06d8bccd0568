"""The survey of a data set: what was planted is found, with both places, and nothing else."""

from __future__ import annotations

import json
import os
import random
import string
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planted import LABELS, ONLY_DEV, changed, planted

from bertsmith.errors import RowsError
from bertsmith.labeled import (
    Answers,
    ChoiceIndex,
    Example,
    Label,
    LabelSet,
    ScoreTarget,
    Splits,
    Tagged,
    load_splits,
    read_examples,
)
from bertsmith.labeled.survey.duplicates import RowPlace, folded, text_key
from bertsmith.labeled.survey.labels import find_typos
from bertsmith.labeled.survey.survey import survey

SEEDS = range(25) if os.environ.get("BERTSMITH_LONG") else range(2)


def row(line: int, text: str | tuple[str, ...], target=None, source: str = "f.tsv") -> Example:
    texts = (text,) if isinstance(text, str) else text
    return Example(source=source, line=line, id=str(line), texts=texts, target=target)


def typos(counts: dict[str, int]) -> dict[str, str]:
    places = {label: RowPlace("train", "f.tsv", line) for line, label in enumerate(counts, 1)}
    return {typo.label: typo.meant for typo in find_typos(counts, places)}


@pytest.mark.parametrize("seed", SEEDS)
def test_everything_planted_is_found_and_nothing_else(seed, tmp_path: Path) -> None:
    truth = planted(seed)
    truth.write(tmp_path)
    splits = Splits(
        train=list(read_examples(tmp_path / "train.tsv")),
        dev=list(read_examples(tmp_path / "dev.tsv")),
    )
    assert len(splits.train) + len(splits.dev) == 10_000 + 20 + 400 + 100 + 1
    found = survey(splits)

    def lines(twins, *, exact: bool) -> set[tuple[int, int]]:
        return {(one.first.line, one.second.line) for one in twins if one.exact == exact}

    assert {(o.first.split, o.second.split) for o in found.leaks} == {("train", "dev")}
    assert lines(found.leaks, exact=True) == truth.exact
    near = lines(found.leaks, exact=False)
    assert near <= truth.near
    assert len(near) >= 0.99 * len(truth.near)
    assert lines(found.conflicts, exact=True) == truth.conflicts
    assert not lines(found.conflicts, exact=False)
    assert not found.duplicates
    assert {typo.label: typo.meant for typo in found.typos} == truth.typos
    assert {typo.label: typo.place.line for typo in found.typos} == truth.typo_lines
    for typo in found.typos:
        at = next(n for n, (_, label) in enumerate(truth.train, 2) if label == typo.meant)
        assert typo.meant_place == RowPlace("train", str(tmp_path / "train.tsv"), at)
    (only,) = found.unseen
    assert (only.label, only.split, only.rows) == (ONLY_DEV, "dev", 1)
    assert truth.dev[only.place.line - 2][1] == ONLY_DEV
    for label in LABELS:
        there = sum(own == label for _, own in truth.train)
        assert found.labels.counts["train"][label] == there


def test_the_lines_and_the_json_name_both_places(tmp_path: Path) -> None:
    truth = planted(1, clean=1_000)
    truth.write(tmp_path)
    found = survey(
        Splits(
            train=list(read_examples(tmp_path / "train.tsv")),
            dev=list(read_examples(tmp_path / "dev.tsv")),
        )
    )
    said = "\n".join(found.lines())
    assert "400 rows of dev stand in train, too (200 of them but for case, space or width):" in said
    assert "50 texts have different labels:" in said
    assert "20 labels are probably misspelled:" in said
    assert "1 label stands in no training row" in said
    one = found.leaks[0]
    assert f"dev.tsv, line {one.second.line} = train.tsv, line {one.first.line}: " in said
    stored = json.loads(json.dumps(found.to_json()))
    assert stored["leaks"]["count"] == 400
    assert stored["leaks"]["exact"] == 200
    assert len(stored["leaks"]["first"]) == 200
    assert len(json.loads(json.dumps(found.to_json(most=None)))["leaks"]["first"]) == 400
    assert stored["leaks"]["first"][0]["second"]["file"] == str(tmp_path / "dev.tsv")
    assert stored["rows"] == {"train": len(truth.train), "dev": len(truth.dev)}


def test_a_label_of_the_dev_file_alone_stops_the_reading_of_a_folder(tmp_path: Path) -> None:
    truth = planted(2, clean=1_000)
    truth.write(tmp_path)
    line = next(n for n, (_, label) in enumerate(truth.dev, 2) if label == ONLY_DEV)
    with pytest.raises(RowsError, match=rf"dev\.tsv, line {line}, .*'weather'"):
        load_splits(tmp_path)


@given(st.text(max_size=60), st.randoms(use_true_random=False))
@settings(max_examples=300, deadline=None)
def test_folding_is_stable_and_blind_to_width_and_space(text: str, draw: random.Random) -> None:
    once = folded(text)
    assert folded(once) == once
    assert folded(f"\u3000{text.replace(' ', chr(0xA0) * 2)} ") == once
    plain = "".join(c for c in text if c.isascii())
    assert folded("".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in plain)) == folded(
        plain
    )
    if plain.strip() and plain.isprintable() and any(c.isalpha() for c in plain):
        assert folded(changed(draw, plain)) == folded(plain)


def test_fields_do_not_run_into_each_other() -> None:
    assert text_key(("ab", "c")) != text_key(("a", "bc"))
    assert text_key(("ab",)) != text_key(("ab", ""))
    assert text_key(("A  B", "你 好")) == text_key((" a b", "你好"))
    assert text_key(("the rapist",)) != text_key(("therapist",))
    assert text_key(("\ud800",))  # half of a character does not stop a survey


def test_copies_leaks_and_conflicts_are_kept_apart() -> None:
    x, y = Label("x"), Label("y")
    found = survey(
        {
            "train": [row(1, "a b", x), row(2, "A b", y), row(3, "a b", x), row(4, "a  b", x)],
            "dev": [row(1, "a b", y), row(2, "c", x)],
            "test": [row(1, "A B"), row(2, "c"), row(3, "c")],
        }
    )

    def pairs(twins) -> list[tuple[str, int, str, int, bool]]:
        return [
            (o.first.split, o.first.line, o.second.split, o.second.line, o.exact) for o in twins
        ]

    assert pairs(found.duplicates) == [
        ("train", 1, "train", 3, True),
        ("train", 1, "train", 4, False),
        ("test", 2, "test", 3, True),
    ]
    assert pairs(found.conflicts) == [
        ("train", 1, "train", 2, False),
        ("train", 1, "dev", 1, True),
    ]
    assert sorted(pairs(found.leaks)) == [
        ("dev", 1, "test", 1, False),
        ("dev", 2, "test", 2, True),
        ("dev", 2, "test", 3, True),
        ("train", 1, "dev", 1, True),
        ("train", 1, "test", 1, False),
    ]
    assert not found.typos
    assert not found.unseen


@pytest.mark.parametrize(
    ("one", "two", "conflict"),
    [
        (LabelSet(("a", "b")), LabelSet(("b", "a")), False),
        (LabelSet(("a",)), LabelSet(()), True),
        (ScoreTarget(1.0), ScoreTarget(1.0), False),
        (ScoreTarget(1.0), ScoreTarget(1.5), True),
        (ChoiceIndex(0), ChoiceIndex(1), True),
        (Tagged(((0, 1),), ("B-PER",)), Tagged(((0, 1),), ("B-LOC",)), True),
        (Answers((("old", 3),)), Answers((("an old", 0), ("Old", 3))), False),
        (Answers((("old", 3),)), Answers((("new", 3),)), True),
        (Answers((("old", 3),)), Answers(()), True),
        (Label("a"), None, False),
    ],
)
def test_every_kind_of_target_can_contradict_itself(one, two, conflict) -> None:
    found = survey({"train": [row(1, ("q", "t"), one)], "dev": [row(7, ("q", "t"), two)]})
    assert len(found.conflicts) == conflict
    assert len(found.leaks) == 1
    said = "\n".join(found.lines())
    assert ("1 text has different labels" in said) == conflict
    together = survey({"train": [row(1, ("q", "t"), one), row(2, ("q", "t"), two)]})
    assert len(together.duplicates) == (not conflict and two is not None)


def test_labels_are_counted_by_what_is_learned() -> None:
    tags = Tagged(((0, 1), (2, 3), (4, 5)), ("B-PER", "I-PER", "B-LOC"))
    found = survey({"train": [row(1, "a b c", tags), row(2, "d e f", tags)]})
    assert found.labels.counts["train"] == {"PER": 2, "LOC": 2}
    found = survey({"train": [row(1, "a", LabelSet(("p", "q"))), row(2, "b", LabelSet(()))]})
    assert found.labels.counts["train"] == {"p": 1, "q": 1}
    found = survey(
        {"train": [row(1, "a", ScoreTarget(1.0)), row(2, "b", ScoreTarget(3.0)), row(3, "c")]}
    )
    assert found.labels.scores == {"train": (1.0, 2.0, 3.0)}
    assert found.labels.unlabeled == {"train": 1}
    assert "train: scores from 1 to 3, 2 on average" in found.lines()
    choices = [row(n, (str(n), "x", "y"), ChoiceIndex(0)) for n in range(3)]
    found = survey({"train": choices, "dev": [row(9, ("9", "x", "y"), ChoiceIndex(1))]})
    assert not found.unseen
    assert survey({"train": [], "dev": []}).lines() == ["rows: "]


def test_uneven_labels_come_with_a_remedy() -> None:
    rows = [row(n, f"text {n}", Label("rare" if n < 6 else "common")) for n in range(66)]
    found = survey({"train": rows})
    assert found.imbalance is not None
    assert (found.imbalance.rarest_rows, found.imbalance.commonest_rows) == (6, 60)
    assert "'rare' has 6 rows to learn from, 'common' 60" in found.lines()[-1]
    assert "plan.sampler = balanced" in found.lines()[-1]
    assert survey({"train": rows[1:]}).imbalance is not None
    assert survey({"train": rows[:-1]}).imbalance is None


@pytest.mark.parametrize(
    ("label", "meant"),
    [
        ("bussiness", "business"),
        ("buisness", "business"),
        ("entertainmnet", "entertainment"),
        ("enteratinmnet", "entertainment"),
        ("Sport", "sport"),
        ("sport ", "sport"),
        ("not entailment", "not_entailment"),
        ("ｓｐｏｒｔ", "sport"),
        ("tehc", "tech"),
        ("pso", "pos"),
        ("体育育", "体育"),
        ("dislikke", "dislike"),
        ("type AA", "type-AA"),
    ],
)
def test_a_rare_label_close_to_a_frequent_one_is_questioned(label, meant) -> None:
    assert typos({meant: 100, "something else": 80, label: 2}) == {label: meant}


@pytest.mark.parametrize(
    "pair",
    [
        ("class 1", "class 2"), ("1", "2"), ("10", "11"), ("type A", "type B"), ("体育", "教育"),
        ("correct", "incorrect"), ("typical", "atypical"), ("relevant", "irrelevant"),
        ("entailment", "not_entailment"), ("cat", "car"), ("pos", "neg"), ("ham", "spam"),
        ("足球", "足球赛"), ("level1", "level2"), ("房产新闻", "房屋新闻"),
        ("male", "female"), ("v1.0", "v1.1"), ("yes", "no"), ("PER", "LOC"),
    ],
)  # fmt: skip
def test_labels_of_one_kind_are_not_taken_for_typos(pair) -> None:
    for one, two in (pair, pair[::-1]):
        assert typos({one: 1000, two: 1}) == {}


def test_two_frequent_labels_are_typos_of_each_other_only_when_they_differ_by_case() -> None:
    assert typos({"contract": 500, "contact": 400}) == {}
    assert typos({"contract": 500, "contact": 20}) == {"contact": "contract"}
    assert typos({"sport": 500, "Sport": 500, "SPORT": 3}) == {"sport": "Sport", "SPORT": "Sport"}


def test_many_labels_are_compared_with_the_frequent_ones() -> None:
    draw = random.Random(0)

    def name() -> str:
        return "".join(draw.choices(string.ascii_lowercase, k=14))

    frequent, rare = [name() for _ in range(300)], [name() for _ in range(3_000)]
    wrong = [label[:5] + label[6] + label[5] + label[8:] for label in frequent[:20]]
    counts = {**dict.fromkeys(frequent, 100), **dict.fromkeys([*rare, *wrong], 1)}
    assert typos(counts) == dict(zip(wrong, frequent, strict=False))


def test_a_survey_holds_no_second_copy_of_the_texts() -> None:
    count, size = 2_000, 4_000
    rows = [row(n, f"{n} " + "word " * (size // 5), Label("x")) for n in range(count)]
    tracemalloc.start()
    try:
        survey({"train": rows})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 400 * count  # bytes, a tenth of the texts
