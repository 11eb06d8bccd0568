"""The data spec is saved with the model: columns are found again without the report's record."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from command_line import run
from tiny_finetuning import rows, tiny_folder

from bertsmith.errors import FolderError
from bertsmith.folders.convert import convert
from bertsmith.runtime.row_files import trained_spec

COLUMNS = ["alpha", "beta", "gamma", "delta"]


def table(path: Path, count: int, seed: int) -> Path:
    """A table whose texts cannot be found by the name or the length of a column."""
    lines = ["\t".join(COLUMNS)]
    for number, example in enumerate(rows(count, seed=seed)):
        noise = f"some words that are longer than all others and come first, number {number}"
        label = getattr(example.target, "name", "")
        lines.append("\t".join([noise, example.texts[0], label, f"x{number}"]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_model_copied_without_its_proof_reads_the_same_columns(tmp_path: Path) -> None:
    source = tiny_folder(tmp_path / "source")
    data = table(tmp_path / "train.tsv", 80, seed=1)
    out = tmp_path / "model"
    columns = ["--text", "beta", "--label", "gamma"]
    place = ["--model", source, "--out", out, "--epochs", "1", "--quiet"]
    assert run("finetune", data, *place, *columns) == 0
    new = table(tmp_path / "new.tsv", 20, seed=2)
    assert run("predict", out, new, "--out", tmp_path / "first.jsonl", "--quiet") == 0
    copied = tmp_path / "copied"
    shutil.copytree(out, copied, ignore=shutil.ignore_patterns("proof.json", "report.html"))
    assert run("predict", copied, new, "--out", tmp_path / "second.jsonl", "--quiet") == 0
    assert (tmp_path / "first.jsonl").read_bytes() == (tmp_path / "second.jsonl").read_bytes()
    spec = trained_spec(copied)
    assert spec is not None
    assert (spec.text, spec.label) == (("beta",), ("gamma",))
    convert(copied, tmp_path / "converted")
    assert trained_spec(tmp_path / "converted") == spec


def test_without_a_section_nothing_is_known_and_a_broken_one_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    assert trained_spec(folder) is None
    own = folder / "bertsmith.json"
    for section in ([], {"text": 3}, {"no such setting": 1}):
        own.write_text(json.dumps({"data": section}))
        with pytest.raises(FolderError, match=r"bertsmith\.json.*data"):
            trained_spec(folder)
