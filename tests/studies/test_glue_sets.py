"""Data sets are found by the names they are published under; what is not there is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertsmith.errors import InputFileError
from bertsmith.studies.data_sets import SETS, find_sets
from bertsmith.tasks.kinds import TASKS
from bertsmith.training.kinds.labeled.recipe import load_finetune_recipe

FIGURES = {"accuracy", "f1", "mcc", "spearman", "pearson", "exact"}


def put(folder: Path, *names: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text("x\ty\n")


@pytest.mark.parametrize(
    ("called", "name"),
    [
        ("CoLA", "cola"),
        ("SST-2", "sst2"),
        ("sst2", "sst2"),
        ("STS-B", "stsb"),
        ("stsbenchmark", "stsb"),
        ("tnews_public", "tnews"),
        ("cluewsc2020_public", "cluewsc"),
        ("cmrc2018_public", "cmrc"),
        ("SQuAD-v1.1", "squad"),
        ("c3_public", "c3"),
        ("wikiann_en", "wikiann"),
    ],
)
def test_published_names_are_known(tmp_path: Path, called: str, name: str) -> None:
    put(tmp_path / called, "train.tsv", "dev.tsv")
    assert find_sets(tmp_path).usable == {name: tmp_path / called}
    assert find_sets(tmp_path / called).usable == {name: tmp_path / called}  # the set itself


def test_one_level_down_single_files_and_what_is_no_data_set(tmp_path: Path) -> None:
    put(tmp_path / "zh" / "AFQMC", "train.txt")
    put(tmp_path / "notes", "train.tsv")
    put(tmp_path, "rte.jsonl")
    put(tmp_path / "QNLI", "dev.tsv", "test.tsv")
    shelf = find_sets(tmp_path)
    assert shelf.usable == {"rte": tmp_path / "rte.jsonl", "afqmc": tmp_path / "zh" / "AFQMC"}
    assert "no file is called train" in shelf.unusable["qnli"]
    assert "qnli" not in shelf.absent("GLUE")
    assert {"cola", "mnli"} <= set(shelf.absent("GLUE"))
    with pytest.raises(InputFileError, match="is no folder"):
        find_sets(tmp_path / "rte.jsonl")


def test_every_set_has_a_recipe_and_figures_that_exist() -> None:
    for one in SETS.values():
        load_finetune_recipe(one.name)
        assert one.figures
        assert set(one.published) <= set(one.figures) <= FIGURES
        assert all(0 < value < 1 for value in one.published.values())
    assert {one.suite for one in SETS.values()} == {"GLUE", "CLUE", ""}
    assert {kind.metric.main for kind in TASKS.values()} <= FIGURES | {"f1_micro"}
