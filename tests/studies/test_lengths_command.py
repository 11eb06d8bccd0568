"""`bertsmith lengths`: the table of any rows, and which way to cut wins on labeled ones."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from command_line import run

FAST = ("--epochs", "5", "--lr", "3e-3", "--batch", "8", "--precision", "fp32", "--threads", "1")
FILLING = ["red", "green", "blue", "round", "square"]


def told_at_the_end(path: Path, count: int = 240) -> Path:
    """Rows of 15 to 45 words whose last one alone tells the label."""
    rng = random.Random(1)
    lines = ["text\tlabel"]
    for _ in range(count):
        words = rng.choices(FILLING, k=rng.randint(14, 44))
        last = rng.choice(["bird", "river"])
        lines.append(" ".join([*words, last]) + f"\t{last == 'bird'}")
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_table_needs_no_labels_and_writes_nothing(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "texts.tsv").write_text("text\tid\nred bird\t1\n" + "green " * 200 + "\t2\n")
    assert run("lengths", tmp_path / "texts.tsv", "--model", source, "--text", "text") == 0
    shown = capsys.readouterr().out
    assert "cut at 128" in shown
    assert "max length 128: 50.0 % of the rows are cut" in shown
    assert sorted(path.name for path in tmp_path.iterdir()) == ["texts.tsv"]


def test_a_folder_gives_a_line_for_each_part(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told_at_the_end(tmp_path / "train.tsv", 60)
    told_at_the_end(tmp_path / "dev.tsv", 20)
    arguments = (tmp_path, "--model", source, "--max-length", "16", "--json")
    assert run("lengths", *arguments) == 0
    told = json.loads(capsys.readouterr().out)["lengths"]
    assert {name: part["rows"] for name, part in told["splits"].items()} == {"train": 60, "dev": 20}
    assert told["chosen"]["max_length"] == 16
    assert told["chosen"]["cut"]["train"] > 0.9


def test_the_way_to_cut_that_keeps_the_telling_word_wins(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, out = told_at_the_end(tmp_path / "rows.tsv"), tmp_path / "out"
    command = ("lengths", data, "--model", source, "--compare", "--max-length", "12", "--out", out)
    assert run(*command, *FAST) == 0
    shown = capsys.readouterr()
    assert "head begins, 1 of 4" in shown.err
    assert "tail is better than" in shown.out
    assert "difference to the best" in shown.out
    assert run(*command, *FAST, "--json", "--quiet") == 0  # from what is finished
    told = json.loads(capsys.readouterr().out)["compare"]
    runs = {one["name"]: one["figures"]["accuracy"] for one in told["runs"]}
    assert set(runs) == {"head", "tail", "head+tail", "windows"}
    assert told["best"] == "tail"
    assert runs["tail"] == 1.0
    assert told["against"]["head"]["winner"] == 1
    assert told["against"]["head"]["difference"]["p"] < 0.05
    assert told["rows"] == {"train": 192, "dev": 24}
    assert f"{runs['head']:.4f}" in shown.out  # the same figures as before
    assert not list((out / "runs").iterdir())  # no models stay


def test_nothing_is_trained_where_every_row_fits(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = told_at_the_end(tmp_path / "rows.tsv", 60)
    assert run("lengths", data, "--model", source, "--compare", "--quiet") == 0
    assert "no row is longer than 128 tokens" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.tsv"]
