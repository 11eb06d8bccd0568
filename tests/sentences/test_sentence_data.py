"""Files of sentence rows: what they are taken for, and what makes them unusable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bertsmith.errors import ConfigError, InputFileError, RowsError
from bertsmith.labeled.pairs.pairs import positive_label, read_sentences, split_dev
from bertsmith.labeled.spec import DataSpec

A = ["A plane is taking off.", "A man plays a flute.", "Three men play chess on a bench."]
B = ["An air plane takes off.", "Somebody is playing the flute.", "Two men are playing chess now."]
C = ["The cat sleeps all day long.", "Rain fell on the roof at night.", "He bought some bread."]


def written(folder: Path, name: str, lines: list[str]) -> Path:
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def table(columns: list[list[str]], delimiter: str = "\t") -> list[str]:
    return [delimiter.join(cells) for cells in zip(*columns, strict=True)]


CASES: list[tuple[str, list[list[str]], str, int]] = [
    ("scores.tsv", [A, B, ["5.0", "3.8", "2.25"]], "scores", 2),
    ("whole.tsv", [["sentence1", *A], ["sentence2", *B], ["score", "5", "3", "1"]], "scores", 2),
    ("labels.tsv", [[*A, *B], [*B, *C], ["1", "0", "1", "0", "1", "0"]], "labels", 2),
    (
        "nli.tsv",
        [
            ["premise", *A, *B],
            ["hypothesis", *B, *C],
            [
                "gold_label",
                "entailment",
                "neutral",
                "contradiction",
                "neutral",
                "neutral",
                "neutral",
            ],
        ],
        "labels",
        2,
    ),
    ("named.tsv", [["anchor", *A], ["positive", *B], ["negative", *C]], "triplets", 3),
    (
        "hard.tsv",
        [["sent0", *A], ["sent1", *B], ["hard_neg", *C]],
        "triplets",
        3,
    ),
    (
        "two.tsv",
        [["query", *A], ["positive", *B], ["negative_1", *C], ["negative_2", *A[::-1]]],
        "triplets",
        4,
    ),
    ("bare.tsv", [A, B, C], "triplets", 3),
    ("answers.tsv", [["question", *A], ["answer", *B]], "pairs", 2),
    ("pairs.tsv", [A, B], "pairs", 2),
    ("plain.txt", [A], "texts", 1),
]


@pytest.mark.parametrize(("name", "columns", "kind", "width"), CASES, ids=[c[0] for c in CASES])
def test_kinds_are_guessed(tmp_path: Path, name: str, columns: Any, kind: str, width: int) -> None:
    data = read_sentences(written(tmp_path, name, table(columns)))
    assert data.kind == kind
    assert {len(row) for row in data.rows} == {width}
    assert (data.targets is not None) == (kind in ("scores", "labels"))
    assert data.describe()[0].startswith(f"kind: {kind} (")


def test_objects_are_guessed_by_their_keys(tmp_path: Path) -> None:
    rows = [
        json.dumps({"anchor": a, "positive": b, "negative": c})
        for a, b, c in zip(A, B, C, strict=True)
    ]
    data = read_sentences(written(tmp_path, "rows.jsonl", rows))
    assert data.kind == "triplets"
    assert data.rows[0] == (A[0], B[0], C[0])


def test_sentences_that_come_often_are_texts_still(tmp_path: Path) -> None:
    first, second = [*A] * 4, [B[number // 4] for number in range(12)]
    scores = [f"{number / 3:.2f}" for number in range(12)]
    data = read_sentences(written(tmp_path, "t.tsv", table([first, second, scores])))
    assert (data.kind, len(data.rows[0])) == ("scores", 2)


def test_the_kind_can_be_set(tmp_path: Path) -> None:
    path = written(tmp_path, "scores.tsv", table([A, B, ["1", "0", "1"]]))
    assert read_sentences(path).kind == "labels"
    scores = read_sentences(path, kind="scores")
    assert scores.targets is not None
    assert scores.targets.tolist() == [1.0, 0.0, 1.0]
    pairs = read_sentences(path, kind="pairs", spec=DataSpec(text=(1, 2)))
    assert (pairs.kind, pairs.targets) == ("pairs", None)
    texts = read_sentences(path, kind="texts")
    assert [row for (row,) in texts.rows] == [
        text for pair in zip(A, B, strict=True) for text in pair
    ]


def test_commas_in_plain_texts_are_text(tmp_path: Path) -> None:
    lines = ["One, two, three.", "", "Four, five, six."]
    data = read_sentences(written(tmp_path, "plain.txt", lines))
    assert data.rows == [("One, two, three.",), ("Four, five, six.",)]
    assert data.place(1).endswith("line 3")


def test_a_kind_that_the_columns_do_not_hold_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "pairs.tsv", table([A, B]))
    with pytest.raises(ConfigError, match="no column holds a score"):
        read_sentences(path, kind="scores")
    with pytest.raises(ConfigError, match="triplets need 3 text columns, and 2 are read"):
        read_sentences(path, kind="triplets")
    with pytest.raises(ConfigError, match="no kind of sentence data is called 'pars'"):
        read_sentences(path, kind="pars")  # type: ignore[arg-type]


def test_a_triplet_with_an_empty_side_is_named(tmp_path: Path) -> None:
    path = written(
        tmp_path, "t.tsv", table([["anchor", *A], ["positive", *B], ["negative", C[0], "", C[2]]])
    )
    with pytest.raises(InputFileError, match=r"line 3: text 3 of 3 is empty"):
        read_sentences(path)


def test_a_pair_with_an_empty_side_is_rejected_by_the_reader(tmp_path: Path) -> None:
    path = written(tmp_path, "t.tsv", table([A, [B[0], "", B[2]], ["1.5", "2.5", "3.5"]]))
    with pytest.raises(RowsError, match="the text is empty"):
        read_sentences(path)


def test_equal_positive_and_negative_are_named(tmp_path: Path) -> None:
    path = written(
        tmp_path, "t.tsv", table([["anchor", *A], ["positive", *B], ["negative", C[0], B[1], C[2]]])
    )
    with pytest.raises(InputFileError, match="line 3: the positive and the negative are the same"):
        read_sentences(path)


def test_a_score_that_is_no_number_is_rejected(tmp_path: Path) -> None:
    path = written(tmp_path, "t.tsv", table([A, B, ["1.5", "nan", "3.5"]]))
    with pytest.raises(RowsError, match="no finite number"):
        read_sentences(path, kind="scores")


def test_positive_labels_are_known_by_name(tmp_path: Path) -> None:
    path = written(tmp_path, "t.tsv", table([[*A, *B], [*B, *C], ["ja", "nein"] * 3]))
    data = read_sentences(path, kind="labels")
    assert positive_label(data) is None
    assert positive_label(data, "ja") == "ja"
    with pytest.raises(ConfigError, match="is called 'si'"):
        positive_label(data, "si")


def test_rows_with_the_same_first_text_stay_on_one_side(tmp_path: Path) -> None:
    first = [A[number % 3] + str(number // 4) for number in range(40)]
    second = [f"text number {number}" for number in range(40)]
    data = read_sentences(written(tmp_path, "t.tsv", table([first, second])), kind="pairs")
    train, dev = split_dev(data, 0.25, seed=1)
    assert len(train) + len(dev) == 40
    assert 10 <= len(dev) < 14
    assert not {row[0] for row in train.rows} & {row[0] for row in dev.rows}
    again = split_dev(data, 0.25, seed=1)[1]
    assert again.rows == dev.rows
