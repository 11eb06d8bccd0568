"""`bertsmith compare`: two models on one file, in words and as JSON; ensembles of seeds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import run
from tiny_finetuning import RECIPE, SHORT, finetune_seeds, rows, tiny_folder, tiny_job

from bertsmith.labeled.example import Label
from bertsmith.training.kinds.labeled.learner import finetune


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A good model, a bad one of two seeds, one of another task, and a file of rows."""
    home = tmp_path_factory.mktemp("compare")
    source = tiny_folder(home / "source")
    finetune(tiny_job(source, home / "good", recipe=RECIPE))
    bad = SHORT.model_copy(update={"optimizer": SHORT.optimizer.model_copy(update={"lr": 1e-7})})
    finetune_seeds(tiny_job(source, home / "bad", recipe=bad, train=rows(40)), [0, 1])
    finetune(tiny_job(source, home / "number", "regress", recipe=SHORT, train=rows(40, "regress")))
    lines = ["text\tlabel"]
    for example in rows(80, seed=7):
        assert isinstance(example.target, Label)
        lines.append(f"{example.texts[0]}\t{example.target.name}")
    (home / "test.tsv").write_text("\n".join(lines) + "\n")
    return home


def test_the_better_model_is_named_in_plain_words(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("compare", home / "bad", home / "good", home / "test.tsv", "--quiet") == 0
    said = capsys.readouterr().out
    assert "accuracy on 80 rows: bad 0." in said
    assert "paired bootstrap" in said
    assert "McNemar's test" in said
    assert "good is significantly better" in said


def test_json_holds_all_figures_and_another_one_can_be_chosen(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = (home / "good", home / "good", home / "test.tsv")
    assert run("compare", *paths, "--figure", "mcc", "--json", "--quiet") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["figure"] == "mcc"
    assert told["difference"]["value"] == 0
    assert told["winner"] is None
    assert told["rows"] == 80


def test_an_ensemble_of_seeds_answers_as_one(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("evaluate", home / "bad", home / "test.tsv", "--ensemble", "--json", "--quiet") == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 80
    assert run("predict", home / "bad", "red bird", "--ensemble", "--json") == 0
    assert json.loads(capsys.readouterr().out)["prediction"] in ("yes", "no")
    assert run("compare", home / "bad", home / "good", home / "test.tsv", "--ensemble") == 0
    both = capsys.readouterr()
    assert "the mean of 2 runs" in both.err
    assert "good is significantly better" in both.out
    assert run("compare", home / "good", home / "good", home / "test.tsv", "--ensemble") != 0
    assert run("evaluate", home / "good", home / "test.tsv", "--ensemble", "--quiet") != 0
    assert "holds no runs to average" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("folders", "message"),
    [
        (("good", "number"), "is a classify model"),
        (("good",), "give two fine-tuned folders"),
    ],
)
def test_what_cannot_be_compared_is_said(
    home: Path, capsys: pytest.CaptureFixture[str], folders: tuple[str, ...], message: str
) -> None:
    paths = [home / name for name in folders]
    assert run("compare", *paths, home / "test.tsv", "--quiet") != 0
    assert message in capsys.readouterr().err
