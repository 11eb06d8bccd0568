"""The demo's classifier: rows from docstrings, a proven folder, what the terminal shows."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from rich.console import Console
from tiny_finetuning import tiny_folder

from bertsmith.cli.commands import demo
from bertsmith.demo import library_parts
from bertsmith.demo.library_docs import MODULES, Passage, passages
from bertsmith.demo.library_parts import MOST, PARTS, docstring_parts, write_parts
from bertsmith.labeled.example import Label
from bertsmith.runtime.loading import load


def test_every_part_is_of_known_modules_and_has_rows() -> None:
    assert set(PARTS) <= set(MODULES)
    rows = docstring_parts(passages())
    counts: dict[str, int] = {}
    for row in rows:
        assert isinstance(row.target, Label)
        counts[row.target.name] = counts.get(row.target.name, 0) + 1
    assert set(counts) == set(PARTS.values())
    assert all(30 <= count <= MOST for count in counts.values())
    assert len({row.texts for row in rows}) > 0.98 * len(rows)


def test_a_row_does_not_begin_with_the_name_that_gives_it_away() -> None:
    found = [Passage("os.path.join", "os.path.join: Join two paths."), Passage("copy", "copy: no")]
    (row,) = docstring_parts(found)  # copy is of no part
    assert row.texts == ("Join two paths.",)
    assert row.target == Label("files")


def test_the_table_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    count = write_parts(passages(), path)
    with path.open(encoding="utf-8", newline="") as file:
        assert sum(1 for _ in csv.reader(file)) == count + 1


def test_the_map_shows_the_docstrings_of_each_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library_parts, "MOST", 4)
    shown = io.StringIO()
    with load(tiny_folder(tmp_path / "model"), precision="fp32") as model:
        demo._mapped(Console(file=shown, width=200), passages(), model, tmp_path)
    assert "map     32 docstrings as points, by t-SNE and PCA" in shown.getvalue()
    assert str(tmp_path / "map.html") in shown.getvalue()
    page = (tmp_path / "map.html").read_text(encoding="utf-8")
    assert all(f'"{part}"' in page for part in PARTS.values())


def test_the_classifier_is_trained_and_proven(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library_parts, "MOST", 30)
    source = tiny_folder(tmp_path / "model")
    shown = io.StringIO()
    console = Console(file=shown, width=200)
    demo._finetuned(console, passages(), source, tmp_path)
    printed = " ".join(shown.getvalue().split())
    assert "rows 240 docstrings of 8 parts" in printed
    assert " on 24 unseen docstrings" in printed
    for name in ("report.html", "README.md", "proof.json", "model.safetensors"):
        assert (tmp_path / "classifier" / name).is_file()
