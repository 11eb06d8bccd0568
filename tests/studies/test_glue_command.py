"""`bertsmith glue`: what is there is trained, what is not there is told, once is enough."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import run
from tiny_finetuning import rows, tiny_folder

from bertsmith.labeled.example import Label
from bertsmith.runtime.load_predictor import load_predictor

FAST = ("--epochs", "1", "--lr", "3e-3", "--batch", "8", "--precision", "fp32", "--threads", "1")


def labeled(count: int, seed: int) -> list[tuple[str, str]]:
    return [
        (example.texts[0], str(int(example.target.name == "yes")))
        for example in rows(count, seed=seed)
        if isinstance(example.target, Label)
    ]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """CoLA and SST-2 as GLUE writes them, TNEWS as CLUE does, and a set without training rows."""
    home = tmp_path_factory.mktemp("glue")
    tiny_folder(home / "model")
    for folder in ("CoLA", "SST-2", "zh/tnews_public", "QNLI", "swag"):
        (home / "data" / folder).mkdir(parents=True)
    for split, count, seed in (("train", 60, 1), ("dev", 24, 2), ("test", 20, 3)):
        rows = labeled(count, seed)
        cola = "".join(f"gj04\t{label}\t\t{text}\n" for text, label in rows)
        if split == "test":
            cola = "index\tsentence\n" + "".join(f"{n}\t{t}\n" for n, (t, _) in enumerate(rows))
        (home / "data" / "CoLA" / f"{split}.tsv").write_text(cola)
        sst = "sentence\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in rows)
        (home / "data" / "SST-2" / f"{split}.tsv").write_text(sst)
        news = [
            {"label": f"10{label}", "label_desc": "news", "sentence": text, "keywords": ""}
            for text, label in rows
        ]
        lines = "".join(json.dumps(row) + "\n" for row in news)
        (home / "data" / "zh" / "tnews_public" / f"{split}.json").write_text(lines)
    (home / "data" / "QNLI" / "dev.tsv").write_text("index\tquestion\tsentence\tlabel\n")
    (home / "data" / "swag" / "train.csv").write_text("this is no table of swag\n")
    return home


def test_every_set_that_is_there_becomes_a_row(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("glue", home / "model", home / "data", "--out", home / "out", *FAST)
    assert run(*command) == 0
    shown = capsys.readouterr()
    assert [line.split()[0] for line in shown.out.splitlines()[1:4]] == ["cola", "sst2", "tnews"]
    assert "0.935 (test)" in shown.out
    assert "missing from GLUE: mrpc, stsb, qqp, mnli, rte, wnli" in shown.out
    assert "not usable for training: qnli" in shown.out
    assert "name them with --data-set): swag" in shown.out
    assert len(load_predictor(home / "out" / "sst2").predict(["red bird"])) == 1
    marks = {path: path.stat().st_mtime_ns for path in (home / "out").rglob("*.safetensors")}
    assert run(*command, "--json") == 0
    again = capsys.readouterr()
    assert "finished already: 3 of 3 runs" in again.err
    assert {p: p.stat().st_mtime_ns for p in (home / "out").rglob("*.safetensors")} == marks
    told = json.loads(again.out)
    sets = {one["name"]: one for one in told["sets"]}
    assert sets["sst2"]["rows"] == {"train": 60, "dev": 24, "test": 20}
    assert sets["cola"]["rows"]["test"] == 0  # without labels
    assert set(sets["sst2"]["test"]) == set(sets["sst2"]["figures"])
    assert sets["tnews"]["suite"] == "CLUE"
    right = sum(label == "1" for _, label in labeled(24, 2)) / 24
    assert sets["sst2"]["majority"]["accuracy"] == pytest.approx(max(right, 1 - right))
    assert f"{sets['cola']['figures']['mcc']:.4f}" in shown.out


def test_rows_can_be_few_and_sets_named(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ("glue", home / "model", home / "data", "--out", home / "few", *FAST)
    assert run(*command, "--data-set", "sst2", "--max-rows", "16", "--json", "--quiet") == 0
    (one,) = json.loads(capsys.readouterr().out)["sets"]
    assert (one["name"], one["rows"]) == ("sst2", {"train": 16, "dev": 16, "test": 20})


def test_a_set_that_cannot_be_read_does_not_end_the_others(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("--data-set", "swag", "--data-set", "sst2", "--max-rows", "16")
    command = ("glue", home / "model", home / "data", "--out", home / "some", *FAST, *names)
    assert run(*command, "--quiet") == 2
    shown = capsys.readouterr().out
    assert "failed: swag: " in shown
    assert "sst2" in shown


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--data-set", "sst"), "did you mean 'sst2'"),
        (("--data-set", "mrpc"), "holds no folder or file of that name"),
        (("--data-set", "qnli"), "no file is called train"),
    ],
)
def test_sets_that_are_not_there_are_named(
    home: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], message: str
) -> None:
    assert run("glue", home / "model", home / "data", "--out", home / "no", *more) != 0
    assert message in capsys.readouterr().err
    assert not (home / "no").exists()


def test_a_folder_without_any_set_says_which_names_are_known(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("glue", home / "model", tmp_path) != 0
    assert "cola, sst2" in capsys.readouterr().err
