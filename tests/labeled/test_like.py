"""A file for a model that is there is read as in training, if it can be."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertsmith.errors import InputFileError
from bertsmith.labeled.guess.guess_spec import guess_spec
from bertsmith.labeled.guess.infer_spec import infer_spec
from bertsmith.labeled.read.reader import read_examples
from bertsmith.labeled.spec import DataSpec


def written(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def trained(tmp_path: Path, **given: object) -> DataSpec:
    """The spec of a training table in which nothing is called as usual."""
    rows = [f"a{n}\tsome longer words {n}\t{'xy'[n % 2]}" for n in range(30)]
    path = written(tmp_path / "train.tsv", "alpha\tbeta\tgamma", *rows)
    spec = DataSpec(text=("beta",), label=("gamma",), header=True, task="classify")
    return guess_spec(path, given=spec.model_copy(update=given))


def texts(path: Path, spec: DataSpec) -> list[tuple[str, ...]]:
    return [example.texts for example in read_examples(path, spec)]


def test_the_same_columns_are_read_as_in_training(tmp_path: Path) -> None:
    like = trained(tmp_path)
    path = written(tmp_path / "new.tsv", "alpha\tbeta\tgamma", "a\tred bird\tnever seen")
    spec = infer_spec(path, DataSpec(), like, "classify", labeled=False)
    assert texts(path, spec) == [("red bird",)]
    assert spec.label == ()  # a label that does not exist does no harm
    spec = infer_spec(path, DataSpec(), like, "classify", labeled=True)
    assert (spec.text, spec.label) == (("beta",), ("gamma",))
    assert spec.why["text"] == "as in training"


def test_what_the_user_says_comes_first(tmp_path: Path) -> None:
    like = trained(tmp_path)
    path = written(tmp_path / "new.tsv", "alpha\tbeta\tgamma", "a\tred bird\tx")
    spec = infer_spec(path, DataSpec(text=("alpha",)), like, "classify", labeled=False)
    assert texts(path, spec) == [("a",)]


def test_columns_of_training_are_found_in_another_order(tmp_path: Path) -> None:
    path = written(tmp_path / "new.tsv", "more\tgamma\tbeta", "1\tx\tred bird")
    spec = infer_spec(path, DataSpec(), trained(tmp_path), "classify", labeled=True)
    assert texts(path, spec) == [("red bird",)]
    assert spec.label == ("gamma",)


def test_keys_of_training_are_found_among_others(tmp_path: Path) -> None:
    like = DataSpec(format="jsonl", text=("body",), label=("y",), task="classify", why={"x": "y"})
    path = written(tmp_path / "new.jsonl", '{"text": "not this one", "body": "this one"}')
    spec = infer_spec(path, DataSpec(), like, "classify", labeled=False)
    assert texts(path, spec) == [("this one",)]


def test_a_txt_file_is_one_text_a_line(tmp_path: Path) -> None:
    path = written(tmp_path / "new.txt", "one, with a comma", 'a "quote', "", "last")
    spec = infer_spec(path, DataSpec(), trained(tmp_path), "classify", labeled=False)
    assert texts(path, spec) == [("one, with a comma",), ('a "quote',), ("",), ("last",)]


def test_another_number_of_texts_is_refused(tmp_path: Path) -> None:
    pair = trained(tmp_path, text=("alpha", "beta"))
    path = written(tmp_path / "new.jsonl", '{"text": "only one"}')
    with pytest.raises(InputFileError, match=r"reads 2 texts of each row.*--text"):
        infer_spec(path, DataSpec(), pair, "classify", labeled=False)
