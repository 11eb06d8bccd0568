"""`bertsmith compare-vectors`: every kind of vector, frozen and trained, as one table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import run
from tiny_finetuning import rows, tiny_folder

from bertsmith.labeled.example import Label

FAST = ("--epochs", "1", "--frozen-epochs", "2", "--lr", "3e-3", "--frozen-lr", "1e-2")
FAST += ("--batch", "16", "--precision", "fp32", "--threads", "1", "--max-length", "16")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("vectors")
    tiny_folder(home / "model")
    lines = ["text\tlabel"]
    for example in rows(120):
        assert isinstance(example.target, Label)
        lines.append(f"{example.texts[0]}\t{example.target.name}")
    (home / "rows.tsv").write_text("\n".join(lines) + "\n")
    return home


def told(home: Path, *more: str | Path, out: str, capsys: pytest.CaptureFixture[str]) -> dict:  # type: ignore[type-arg]
    words = (home / "rows.tsv", "--model", home / "model", "--out", home / out, *FAST, *more)
    assert run("compare-vectors", *words, "--json", "--quiet") == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_one_table_holds_every_choice_twice_best_first(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (home / "rows.tsv", "--model", home / "model", "--out", home / "all", *FAST)
    assert run("compare-vectors", *words) == 0
    shown = capsys.readouterr()
    assert "frozen.first-last begins, 1 of 27" in shown.err
    assert "left for all" in shown.err
    assert "attention of weighted" in shown.out
    found = told(home, out="all", capsys=capsys)
    assert found["rows"] == {"train": 96, "dev": 12}
    kinds = [(row["encoder"], row["pooling"], row["layers"]) for row in found["runs"]]
    assert len(set(kinds)) == 13 + 14  # the published head can only be trained
    assert ("trained", "published", "last") in kinds
    assert ("frozen", "first", "all") in kinds
    figures = [row["figures"]["accuracy"] for row in found["runs"]]
    assert figures == sorted(figures, reverse=True)
    lines = [line for line in shown.out.splitlines() if " of " in line and "." in line]
    assert [f"{figure:.4f}" for figure in figures] == [line.split()[4] for line in lines]


def test_finished_rows_are_not_repeated_and_others_are_added(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    narrow = ("--encoder", "frozen", "--pooling", "mean", "--layers", "last")
    first = told(home, *narrow, out="more", capsys=capsys)
    path = home / "more" / "finished" / "frozen.mean-last.json"
    before = path.stat().st_mtime_ns
    wider = told(home, *narrow, "--layers", "0", out="more", capsys=capsys)
    assert path.stat().st_mtime_ns == before
    assert len(wider["runs"]) == 2
    assert first["runs"][0] in wider["runs"]
    told(home, *narrow, "--frozen-lr", "5e-3", out="more", capsys=capsys)
    assert path.stat().st_mtime_ns > before  # another rate is another run


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--pooling", "average"), "average"),
        (("--layers", "9"), "there is no layer 9"),
        (("--layers", "concat4"), "reads four layers"),
        (("--set", "plan.epoch=3"), "epoch"),
    ],
)
def test_what_cannot_be_tried_is_said_before_training(
    home: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], message: str
) -> None:
    words = (home / "rows.tsv", "--model", home / "model", "--out", home / "bad", *more)
    assert run("compare-vectors", *words, "--quiet") != 0
    assert message in capsys.readouterr().err
    assert not (home / "bad" / "finished").exists()


def test_tags_have_no_vector_of_a_text(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"{text} O\nbird{text} B-animal\n" for text in map(str, range(40))]
    (home / "tags.conll").write_text("\n".join(rows))
    words = (home / "tags.conll", "--model", home / "model", "--out", home / "tags")
    assert run("compare-vectors", *words, "--quiet") != 0
    assert "no text vector" in capsys.readouterr().err
