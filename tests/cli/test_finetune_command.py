"""`bertsmith finetune`: from rows to a proven folder, in one command that resumes."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest
from command_line import COMMAND, environment, fresh, run
from tiny_finetuning import rows

from bertsmith.labeled.example import Label
from bertsmith.runtime.load_predictor import load_predictor

FAST = ("--epochs", "3", "--lr", "3e-3", "--batch", "8", "--precision", "fp32", "--threads", "1")
PROOF = ("model.safetensors", "bertsmith.json", "predictions.dev.jsonl")


def table(path: Path, count: int = 160, *, seed: int = 0, columns: str = "text\tlabel") -> Path:
    """Rows of a table whose columns may also be `mood` and `body`, in any order."""
    names = columns.split("\t")
    lines = [columns]
    for number, example in enumerate(rows(count, seed=seed)):
        assert isinstance(example.target, Label)
        values = {"text": example.texts[0], "label": example.target.name, "id": f"r{number}"}
        values |= {"body": values["text"], "mood": values["label"]}
        lines.append("\t".join(values[name] for name in names))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def record(out: Path) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = json.loads((out / "proof.json").read_text("utf-8"))
    return found


def test_one_file_becomes_a_proven_model(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, out = table(tmp_path / "rows.tsv", 200), tmp_path / "out"
    assert run("finetune", data, "--model", source, "--out", out, *FAST) == 0
    shown = capsys.readouterr()
    assert "label: label (a column is usually called so)" in shown.err  # what was guessed
    assert "rows: train 160, dev 20, test 20" in shown.err  # the survey
    assert "cut at 64" in shown.err  # the lengths
    assert "dev, 20 rows:" in shown.out
    assert "test, 20 rows:" in shown.out
    assert "TF-IDF linear model" in shown.out
    assert f"report: {out / 'report.html'}" in shown.out
    for name in (
        *PROOF,
        "proof.json",
        "report.html",
        "README.md",
        "predictions.test.jsonl",
        "split.json",
        "log.jsonl",
        "config.json",
    ):
        assert (out / name).stat().st_size > 0, name
    told = record(out)
    assert told["data"]["rows"] == {"train": 160, "dev": 20, "test": 20}
    assert told["dev"]["figures"]["accuracy"] > 0.8  # type: ignore[index]
    assert set(told["baselines"]["dev"]) == {"majority", "words"}  # type: ignore[call-overload]
    assert told["training"]["steps"] == 60
    assert "attention dropout 0," in told["regularization"]
    assert told["head"] == {"kind": "published", "reads": "the input of the published head"}
    judged = [json.loads(x) for x in (out / "predictions.dev.jsonl").read_text().splitlines()]
    said = load_predictor(out).predict([row["texts"] for row in judged])
    assert [one.value for one in said] == [row["prediction"] for row in judged]
    assert not (tmp_path / "rows.tsv.split.json").exists()


def test_a_head_alone_at_the_rate_of_a_whole_model_is_remarked(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = table(tmp_path / "rows.tsv", 60)
    alone = ("--set", "encoder.frozen=true", *FAST, "--epochs", "1")
    alone += ("--set", "loss.smoothing=0.1")

    def said(out: Path, rate: str) -> str:
        words = ("finetune", data, "--model", source, "--out", out, *alone, "--lr", rate)
        assert run(*words) == 0
        return capsys.readouterr().err

    assert "a learning rate of 0.0001 is low" in said(tmp_path / "slow", "1e-4")
    assert "is low" not in said(tmp_path / "fast", "1e-2")
    told = str(record(tmp_path / "fast")["regularization"])
    assert told.startswith("frozen encoder")
    assert told.endswith("label smoothing 0.1")


@pytest.mark.slow
def test_a_stopped_command_goes_on_and_ends_the_same(source: str, tmp_path: Path) -> None:
    data = table(tmp_path / "rows.tsv", 400)
    whole, broken = tmp_path / "whole", tmp_path / "broken"

    def command(out: Path) -> list[str]:
        words = ("finetune", data, "--model", source, "--out", out, *FAST)
        settings = ("--set", "plan.evaluations=4", "--set", "save.every=30")
        return [*map(str, words), *settings]

    assert fresh(*command(whole)).returncode == 0
    for number, code, step in ((signal.SIGKILL, -9, 30), (signal.SIGTERM, 75, 60)):
        process = subprocess.Popen(
            [*COMMAND, *command(broken)],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        limit = time.monotonic() + 100
        while not (broken / "checkpoints" / f"step-{step:08d}").exists():
            assert process.poll() is None, "it ended before it was to be stopped"
            assert time.monotonic() < limit
            time.sleep(0.005)
        process.send_signal(number)
        said, _ = process.communicate(timeout=60)
        assert process.returncode == code, said
        assert not (broken / "proof.json").exists()
    assert b"stopped by SIGTERM" in said
    done = fresh(*command(broken))
    assert done.returncode == 0, done.stderr
    for name in PROOF:
        assert (whole / name).read_bytes() == (broken / name).read_bytes(), name
    figures = record(whole)["test"]["figures"]
    assert record(broken)["test"]["figures"] == figures


def test_files_of_their_own_and_columns_by_name(source: str, tmp_path: Path) -> None:
    columns = "id\tmood\tbody"
    data = table(tmp_path / "a.tsv", columns=columns)
    dev = table(tmp_path / "b.tsv", 40, seed=1, columns=columns)
    test = table(tmp_path / "c.tsv", 30, seed=2, columns=columns)
    out = tmp_path / "out"
    done = run(
        *("finetune", data, "--model", source, "--out", out, "--dev", dev, "--test", test),
        *("--text", "body", "--label", "mood", "--quiet", *FAST),
    )
    assert done == 0
    assert record(out)["data"]["rows"] == {"train": 160, "dev": 40, "test": 30}
    assert not (out / "split.json").exists()
    # What was set in training need not be said again.
    more = table(tmp_path / "more.tsv", 20, seed=3, columns="body\tid")
    assert run("predict", out, test, "--out", tmp_path / "said.jsonl", "--quiet") == 0
    first = json.loads((tmp_path / "said.jsonl").read_text().splitlines()[0])
    assert list(first)[:4] == ["id", "mood", "body", "prediction"]
    assert run("evaluate", out, test, "--quiet") == 0
    assert run("predict", out, more, "--out", tmp_path / "more.jsonl", "--quiet") == 0


def test_several_seeds_show_their_mean(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, out = table(tmp_path / "rows.tsv"), tmp_path / "out"
    arguments = ("finetune", data, "--model", source, "--out", out, "--seeds", "2", *FAST)
    assert run(*arguments, "--epochs", "1") == 0
    assert "over 2 seeds" in capsys.readouterr().out
    told = record(out)
    assert [one["seed"] for one in told["seeds"]] == [0, 1]  # type: ignore[index]
    assert told["training"]["steps"] == 16
    assert told["curves"]
    assert load_predictor(out).predict(["a bird"])


def test_folds_judge_every_row_once(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, out = table(tmp_path / "rows.tsv", 100), tmp_path / "out"
    arguments = ("finetune", data, "--model", source, "--out", out, "--folds", "2", *FAST)
    assert run(*arguments, "--epochs", "1") == 0
    assert "80 rows in 2 folds" in capsys.readouterr().out
    assert record(out)["folds"]["count"] == 2


def test_mistakes_leave_nothing_behind(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, out = table(tmp_path / "rows.tsv"), tmp_path / "out"
    usual = ("--model", source, "--out", out)
    for arguments, said in (
        ((data, *usual, "--set", "optimizer.lrr=1"), "optimizer.lr"),
        ((data, *usual, "--recipe", "stt2"), "did you mean"),
        ((tmp_path / "none.tsv", *usual), "cannot read"),
        ((data, *usual, "--text", "txt"), "no column is called 'txt'"),
        ((data, *usual, "--split", "80"), "80/10/10"),
        ((data, *usual, "--format", "lines"), "only predict supports it"),
        ((data, "--model", "no-such-model", "--out", out), "no-such-model"),
        ((data, *usual, "--seeds", "2", "--folds", "2"), "not both"),
        ((data, *usual, "--device", "nonsense"), "is not a device"),
    ):
        assert run("finetune", *arguments) == 2, arguments
        assert said in capsys.readouterr().err
    data.write_text(data.read_text() + "one\ttoo\tmany\n")
    assert run("finetune", data, *usual) == 2
    assert "line 162" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.tsv"]
    assert run("finetune", data, *usual, "--on-error", "skip", *FAST) == 0
    assert "1 rows rejected" in capsys.readouterr().err
    assert record(out)["data"]["rejected"] == {"train": 1}
