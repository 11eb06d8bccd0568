"""The Python functions: the same folders and numbers as the commands, in a few lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import run
from tiny_finetuning import tiny_folder
from toy_corpus import toy_corpus

import bertsmith
from bertsmith.errors import ConfigError

SETTINGS = {"plan.epochs": 2, "length.max_length": 16, "run.precision": "fp32", "run.threads": 1}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_folder(tmp_path_factory.mktemp("source") / "model"))


def rows(path: Path, count: int = 60) -> Path:
    lines = [f"{'good' if n % 2 else 'bad'} film number {n}\t{'pos' if n % 2 else 'neg'}"
             for n in range(count)]  # fmt: skip
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_finetune_evaluate_and_predict_take_three_lines(model: str, tmp_path: Path) -> None:
    data = rows(tmp_path / "rows.tsv")
    result = bertsmith.finetune(data, model=model, out=tmp_path / "tuned", settings=SETTINGS)
    record = bertsmith.evaluate(result.folder, data)
    predictions = bertsmith.predict(result.folder, ["good film", "bad film"])
    assert result.outcome.status == "finished"
    assert result.report is not None
    assert result.report.is_file()
    assert 0.0 <= result.metrics["accuracy"] <= 1.0
    assert record["file"] == str(data)
    assert record["figures"].keys() == result.metrics.keys()
    assert {one.value for one in predictions} <= {"pos", "neg"}


def test_the_command_and_the_function_write_the_same_model(model: str, tmp_path: Path) -> None:
    data = rows(tmp_path / "rows.tsv")
    bertsmith.finetune(data, model=model, out=tmp_path / "python", settings=SETTINGS)
    given = [part for name, value in SETTINGS.items() for part in ("--set", f"{name}={value}")]
    code = run("finetune", data, "--model", model, "--out", tmp_path / "command", *given)
    assert code == 0
    for name in ("model.safetensors", "bertsmith.json", "config.json", "split.json"):
        python, command = (tmp_path / side / name for side in ("python", "command"))
        assert python.read_bytes() == command.read_bytes(), name


def test_the_same_call_again_trains_nothing(model: str, tmp_path: Path) -> None:
    data, out = rows(tmp_path / "rows.tsv"), tmp_path / "tuned"
    first = bertsmith.finetune(data, model=model, out=out, settings=SETTINGS)
    stamp = (out / "model.safetensors").read_bytes()
    again = bertsmith.finetune(data, model=model, out=out, settings=SETTINGS)
    assert again.outcome.step == first.outcome.step
    assert again.metrics == first.metrics
    assert (out / "model.safetensors").read_bytes() == stamp


def test_evaluate_writes_what_it_returns(model: str, tmp_path: Path) -> None:
    data = rows(tmp_path / "rows.tsv")
    result = bertsmith.finetune(data, model=model, out=tmp_path / "tuned", settings=SETTINGS)
    record = bertsmith.evaluate(result.folder, data, out=tmp_path / "results")
    written = json.loads((tmp_path / "results" / "evaluation.json").read_text(encoding="utf-8"))
    assert written == json.loads(json.dumps(record))
    lines = (tmp_path / "results" / "predictions.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 60


def test_pretrain_gives_a_model_that_loads(tmp_path: Path) -> None:
    settings = {"model.size": "tiny", "schedule.steps": 4, "batch.tokens": 512, "save.every": 4}
    corpus = toy_corpus(tmp_path / "corpus")
    result = bertsmith.pretrain("bert", corpus, tmp_path / "model", settings=settings)
    assert (result.outcome.status, result.outcome.step) == ("finished", 4)
    assert result.report is not None
    assert result.report.is_file()
    assert bertsmith.load(result.folder).encode(["a dog"]).shape == (1, 128)


def test_several_devices_need_the_command_line(model: str, tmp_path: Path) -> None:
    data = rows(tmp_path / "rows.tsv")
    with pytest.raises(ConfigError, match="torchrun"):
        bertsmith.finetune(data, model=model, out=tmp_path / "x", settings={"run.devices": 2})
    with pytest.raises(ConfigError, match="torchrun"):
        bertsmith.pretrain("bert", tmp_path, tmp_path / "y", settings={"run.devices": 2})


def test_an_unknown_setting_comes_with_a_hint(model: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"did you mean 'plan\.epochs'"):
        bertsmith.finetune(tmp_path, model=model, out=tmp_path / "x", settings={"plan.epoch": 2})
