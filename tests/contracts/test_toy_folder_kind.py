"""A kind of folder of one's own: listed, used for what it can do, refused by name for the rest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import run
from folder_models import WORDS

from bertsmith.folders import kinds
from bertsmith.folders.kinds import FolderKind, abilities_at, can, of_format

TOY = FolderKind(
    name="toy",
    holds="a toy that knows words",
    finds=of_format("toy.json", "a toy"),
    abilities=can("tokenize"),
    use="`bertsmith tokenize {path} TEXT` shows its tokens",
    facts=lambda folder: {"color": folder.stored("toy.json")["color"]},
)
REFUSED = {
    "embed": ("TOY", "TEXTS", "--out", "OUT.npy"),
    "predict": ("TOY", "a b"),
    "generate": ("TOY", "a b"),
    "fill": ("TOY", "a [MASK]"),
    "correct": ("TOY", "a b"),
    "search": ("TOY", "a b"),
    "evaluate": ("TOY", "TEXTS"),
    "finetune": ("LABELS", "--model", "TOY", "--out", "OUT"),
    "pretrain": ("bert", "--corpus", "TOY", "--out", "OUT"),
    "lm perplexity": ("TOY", "TEXTS"),
    "lm score": ("TOY", "a b"),
    "index build": ("TEXTS", "--model", "TOY", "--out", "OUT"),
    "sentences whiten": ("TOY", "TEXTS", "--out", "OUT"),
    "serve": ("TOY", "--check"),
}


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(kinds, "KINDS", {"toy": TOY, **kinds.KINDS})
    folder = tmp_path / "my-toy"
    folder.mkdir()
    (folder / "toy.json").write_text(json.dumps({"format": "a toy", "color": "red"}))
    (folder / "vocab.txt").write_text("\n".join(WORDS), encoding="utf-8")
    (tmp_path / "texts.txt").write_text("a b\nc d\n")
    (tmp_path / "labels.csv").write_text("text,label\na b,yes\nc d,no\n" * 20)
    return folder


def test_info_lists_it_with_its_facts(toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("info", toy) == 0
    lines = dict(line.split("\t", 1) for line in capsys.readouterr().out.splitlines())
    assert lines["kind"] == "toy: a toy that knows words"
    assert (lines["abilities"], lines["color"]) == ("tokenize", "red")
    assert abilities_at(toy) == {"tokenize"}


def test_what_it_can_do_is_done(toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("tokenize", toy, "a b") == 0
    assert "[CLS]" in capsys.readouterr().out


@pytest.mark.parametrize("command", REFUSED)
def test_what_it_cannot_do_is_refused_by_its_name(
    toy: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    places = {
        "TOY": toy,
        "TEXTS": toy.parent / "texts.txt",
        "LABELS": toy.parent / "labels.csv",
        "OUT": toy.parent / "out",
    }
    given = []
    for one in REFUSED[command]:
        for word, place in places.items():
            one = one.replace(word, str(place))
        given.append(one)
    assert run(*command.split(), *given) > 0
    shown = " ".join(capsys.readouterr().err.split())
    assert "my-toy holds a toy that knows words, which cannot" in shown
    assert f"`bertsmith tokenize {toy} TEXT` shows its tokens" in shown
    assert not (toy.parent / "out").exists()
