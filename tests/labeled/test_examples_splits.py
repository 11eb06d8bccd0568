"""Splits: folders in any spelling, one file split by label and group, and the same tomorrow."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertsmith.errors import ConfigError, InputFileError, RowsError
from bertsmith.labeled import (
    Answers,
    DataSpec,
    Example,
    Label,
    LabelSet,
    ScoreTarget,
    Tagged,
    load_splits,
)
from bertsmith.labeled.split.stratify import assign, strata_of

SHARES = (0.8, 0.1, 0.1)


def rows(count: int, labels: str = "xy", start: int = 0) -> str:
    lines = [f"words of row {n}\t{labels[n % len(labels)]}\n" for n in range(start, start + count)]
    return "text\tlabel\n" + "".join(lines)


def example(number: int, target, text: str | None = None, **extra: str) -> Example:
    texts = (text or f"text {number}",)
    return Example(source="f", line=number, id=str(number), texts=texts, target=target, extra=extra)


@pytest.mark.parametrize(
    "names",
    [
        ("train.tsv", "dev.tsv", "test.tsv"),
        ("training.tsv", "validation.tsv", "test.tsv"),
        ("en-train.tsv", "en-val.tsv", "en-test.tsv"),
        ("Train.tsv", "valid.tsv.gz", "my_test.v2.tsv"),
        ("train.tsv", "dev_matched.tsv", "test_matched.tsv"),
    ],
)
def test_files_of_a_folder_are_found_by_their_names(names, tmp_path: Path) -> None:
    import gzip

    for name, size in zip(names, (30, 6, 4), strict=True):
        data = rows(size, start=size * 10).encode()
        (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    if names[1] == "dev_matched.tsv":
        (tmp_path / "dev_mismatched.tsv").write_text(rows(9))
    (tmp_path / "train_part.tsv" if names[0] == "train.tsv" else tmp_path / "notes.md").write_text(
        "x"
    )
    (tmp_path / f"{names[0]}.rejected.jsonl").write_text("{}\n")
    splits = load_splits(tmp_path)
    assert [len(part) for part in (splits.train, splits.dev, splits.test)] == [30, 6, 4]
    assert not list(tmp_path.glob("*.split.json"))


def test_files_that_could_be_the_same_part_are_not_chosen_from(tmp_path: Path) -> None:
    for name in ("train-a.tsv", "train-b.tsv"):
        (tmp_path / name).write_text(rows(9))
    with pytest.raises(InputFileError, match=r"train-a.tsv, train-b.tsv could all be the train"):
        load_splits(tmp_path)
    for path in tmp_path.iterdir():
        path.unlink()
    (tmp_path / "dev.tsv").write_text(rows(9))
    (tmp_path / "other.tsv").write_text(rows(9))
    with pytest.raises(InputFileError, match=r"no file is called train.*dev.tsv, other.tsv"):
        load_splits(tmp_path)


def test_a_test_file_may_have_other_columns_and_no_labels(tmp_path: Path) -> None:
    lines = "".join(f"gj04\t{n % 2}\t{'' if n % 2 else '*'}\tsome words {n}\n" for n in range(40))
    (tmp_path / "train.tsv").write_text(lines)
    (tmp_path / "dev.tsv").write_text(lines.replace("some", "more"))
    (tmp_path / "test.tsv").write_text(
        "index\tsentence\n" + "".join(f"{n}\twords {n}\n" for n in range(5))
    )
    splits = load_splits(tmp_path)
    assert (len(splits.train), len(splits.dev), len(splits.test)) == (40, 40, 5)
    assert splits.test[3].texts == ("words 3",)
    assert {e.target for e in splits.test} == {None}


def test_a_label_that_only_dev_has_is_named(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text(rows(20, ["pos", "neg"]))  # type: ignore[arg-type]
    (tmp_path / "dev.tsv").write_text("text\tlabel\na b\tpos\nc d\tpso\ne f\tneg\n")
    with pytest.raises(RowsError) as caught:
        load_splits(tmp_path)
    expected = (
        "dev.tsv, line 3, column label: no label of train.tsv is called 'pso'; did you mean 'pos'?"
    )
    assert expected in str(caught.value)
    splits = load_splits(tmp_path, on_error="skip")
    assert len(splits.dev) == 2
    assert "dev.tsv: 1 rows rejected" in splits.notes
    declared = load_splits(tmp_path, DataSpec(labels=("pos", "neg", "pso")))
    assert len(declared.dev) == 3


def test_a_kind_of_entity_that_only_dev_has_is_named(tmp_path: Path) -> None:
    (tmp_path / "train.conll").write_text("Ada\tB-PER\nran\tO\n\nRome\tB-LOC\n\n")
    (tmp_path / "dev.conll").write_text("Ada\tB-PER\n\nEU\tB-ORG\nwon\tO\n\n")
    with pytest.raises(
        RowsError, match=r"dev.conll, line 3, column 2: no label of train.conll is.*'ORG'"
    ):
        load_splits(tmp_path)


def test_one_file_is_split_by_label_and_the_split_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "all.tsv"
    path.write_text(rows(200, "aaaaaaaab"))
    first = load_splits(path, seed=3)
    sizes = [len(part) for part in (first.train, first.dev, first.test)]
    assert sum(sizes) == 200
    assert sizes[0] == pytest.approx(160, abs=2)
    for part, share in zip((first.train, first.dev, first.test), SHARES, strict=True):
        rare = sum(e.target == Label("b") for e in part)
        assert rare == pytest.approx(22 * share, abs=2)
    record = json.loads((tmp_path / "all.tsv.split.json").read_text())
    assert (record["rows"], record["key"], record["seed"]) == (200, "line", 3)
    assert sorted(record["dev"]) == sorted(e.line for e in first.dev)
    again = load_splits(path, seed=3)
    assert (again.train, again.dev, again.test) == (first.train, first.dev, first.test)
    other = load_splits(path, seed=4, saved=tmp_path / "other.json")
    assert other.dev != first.dev


def test_a_split_of_another_file_or_other_wishes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "all.tsv"
    path.write_text(rows(100))
    load_splits(path)
    with pytest.raises(ConfigError, match=r"made with seed 0 and shares .*, not with seed 1"):
        load_splits(path, seed=1)
    with pytest.raises(ConfigError, match=r"not with seed 0 and \(0.5"):
        load_splits(path, shares=(0.5, 0.25, 0.25))
    path.write_text(rows(101))
    with pytest.raises(InputFileError, match=r"all.tsv has changed since .*split.json was made"):
        load_splits(path)
    (tmp_path / "all.tsv.split.json").write_text("{}")
    with pytest.raises(InputFileError, match=r"is no saved split \(file: "):
        load_splits(path)
    with pytest.raises(ConfigError, match="three numbers from 0 that add up"):
        load_splits(path, shares=(0.9, 0.2, 0.1))


def test_a_split_read_with_other_settings_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "all.tsv"
    path.write_text(rows(100) + "\tx\n")
    load_splits(path, on_error="skip")
    with pytest.raises(InputFileError, match=r"was made from 100 rows of .*, now 101 are read"):
        load_splits(path, DataSpec(empty="keep"))


def test_dev_comes_from_train_where_only_a_test_file_is_given(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text(rows(100))
    (tmp_path / "test.tsv").write_text(rows(10, start=500))
    splits = load_splits(tmp_path)
    assert (len(splits.train), len(splits.dev), len(splits.test)) == (90, 10, 10)
    assert load_splits(tmp_path).dev == splits.dev


def test_questions_are_split_by_article(tmp_path: Path) -> None:
    def article(number: int) -> dict[str, object]:
        context = f"Person {number} was here."
        questions = [
            {
                "id": f"{number}-{n}",
                "question": "Who?",
                "answers": [{"text": "Person", "answer_start": 0}],
            }
            for n in range(5)
        ]
        return {"title": f"t{number}", "paragraphs": [{"context": context, "qas": questions}]}

    path = tmp_path / "dev-v1.1.json"
    path.write_text(json.dumps({"version": "1.1", "data": [article(n) for n in range(20)]}))
    splits = load_splits(path)
    titles = [{e.extra["title"] for e in part} for part in (splits.train, splits.dev, splits.test)]
    assert not titles[0] & titles[1]
    assert not (titles[0] | titles[1]) & titles[2]
    assert [len(found) for found in titles] == [16, 2, 2]
    assert json.loads((tmp_path / "dev-v1.1.json.split.json").read_text())["key"] == "id"
    assert load_splits(path).test == splits.test


def test_too_few_rows_are_not_split(tmp_path: Path) -> None:
    path = tmp_path / "all.tsv"
    path.write_text(rows(3))
    with pytest.raises(InputFileError, match="3 rows in 3 groups are too few for a dev part"):
        load_splits(path)
    assert not list(tmp_path.glob("*.split.json"))


def test_rows_without_labels_do_not_train(tmp_path: Path) -> None:
    path = tmp_path / "all.tsv"
    path.write_text("sentence\n" + "".join(f"words {n} and so on\n" for n in range(30)))
    with pytest.raises(InputFileError, match="no row has a label; name its column with --label"):
        load_splits(path)


LABELS = st.lists(st.sampled_from("aaaabbc"), min_size=40, max_size=200)


@settings(max_examples=60, deadline=None)
@given(LABELS, st.integers(0, 5))
def test_every_label_keeps_its_share_and_is_trained_on(labels: list[str], seed: int) -> None:
    examples = [example(n, Label(name)) for n, name in enumerate(labels)]
    whose = assign(examples, seed=seed, shares=SHARES, group=None)
    assert whose == assign(examples, seed=seed, shares=SHARES, group=None)
    for part, share in enumerate(SHARES):
        assert abs(whose.count(part) - share * len(labels)) <= 2
    for name, count in Counter(labels).items():
        mine = [part for part, label in zip(whose, labels, strict=True) if label == name]
        assert 0 in mine
        for part, share in enumerate(SHARES):
            assert abs(mine.count(part) - share * count) <= 3


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 30), min_size=60, max_size=150), st.integers(0, 3))
def test_equal_texts_and_groups_stay_together(texts: list[int], seed: int) -> None:
    same = [example(n, Label("x"), f"text {t}") for n, t in enumerate(texts)]
    grouped = [example(n, Label("x"), site=f"s{t}") for n, t in enumerate(texts)]
    if len(set(texts)) < 12:
        return
    for examples, group in ((same, None), (grouped, "site")):
        whose = assign(examples, seed=seed, shares=(0.6, 0.2, 0.2), group=group)
        parts = {(text, part) for text, part in zip(texts, whose, strict=True)}
        assert len(parts) == len(set(texts))


def test_strata_are_labels_the_rarest_label_kinds_and_quantiles() -> None:
    many = [
        LabelSet(("a", "b")),
        LabelSet(("a",)),
        LabelSet(()),
        LabelSet(("a", "c")),
        LabelSet(("c",)),
    ]
    assert strata_of([example(n, t) for n, t in enumerate(many)]) == ["b", "a", "", "c", "c"]
    scores = strata_of([example(n, ScoreTarget(float(n))) for n in range(100)])
    assert sorted(Counter(scores).values()) == [9] + [10] * 8 + [11]
    tags = [
        Tagged(((0, 1),), ("B-PER",)),
        Tagged(((0, 1),), ("O",)),
        Answers((("a", 0),)),
        Answers(()),
    ]
    assert strata_of([example(n, t) for n, t in enumerate(tags)]) == ["PER", "", "answer", "none"]


def test_scores_are_spread_over_their_range() -> None:
    examples = [example(n, ScoreTarget(n / 10)) for n in range(1_000)]
    whose = assign(examples, seed=0, shares=SHARES, group=None)
    held = [n / 10 for n in range(1_000) if whose[n] == 1]
    assert all(
        sum(low <= value < low + 10 for value in held) in range(9, 12) for low in range(0, 100, 10)
    )


def test_a_label_that_occurs_once_is_for_training() -> None:
    names = ["common"] * 200 + [f"rare {n}" for n in range(40)]
    examples = [example(n, Label(name)) for n, name in enumerate(names)]
    whose = assign(examples, seed=0, shares=SHARES, group=None)
    assert set(whose[200:]) == {0}
    assert [whose.count(part) for part in range(3)] == [192, 24, 24]
