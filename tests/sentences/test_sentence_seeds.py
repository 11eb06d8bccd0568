"""Sentence training with several seeds: the best is saved, finished ones are not repeated."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import run
from tiny_sentences import sentence_rows, tiny_job, with_rows

from bertsmith.errors import ConfigError
from bertsmith.sentences.train.learner import SentenceJob, sentence_learner
from bertsmith.training.execution.execution import Execution
from bertsmith.training.execution.stop import StopRequest
from bertsmith.training.loop.progress import Progress
from bertsmith.training.repeat import repeat
from bertsmith.training.repeat.repeat import train_seeds

LONGER = {"plan": {"steps": 12, "batch": 12, "evaluations": 3}}


def job(model: str, out: Path) -> SentenceJob:
    return tiny_job(model, "cosine", "scores", sections=LONGER, out=out)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders that training was called for, in order."""
    found: list[str] = []
    plain = repeat.run_job

    def watched(learner: object, job: SentenceJob, **given: object) -> object:
        found.append(job.folder.name)
        return plain(learner, job, **given)  # type: ignore[arg-type]

    monkeypatch.setattr(repeat, "run_job", watched)
    return found


def test_the_folder_holds_the_best_seed(tiny: str, tmp_path: Path, calls: list[str]) -> None:
    out = tmp_path / "out"
    many = train_seeds(sentence_learner(), job(tiny, out), [3, 4, 5])
    values = {one.number: one.figures["spearman"] for one in many.members}
    assert len(set(values.values())) > 1
    assert many.best is not None
    assert values[many.best.number] == max(values.values())
    weights = {n: (out / "seeds" / str(n) / "model.safetensors").read_bytes() for n in values}
    assert (out / "model.safetensors").read_bytes() == weights[many.best.number]
    assert len(set(weights.values())) == 3
    assert json.loads((out / "chosen.json").read_text())["from"] == f"seeds/{many.best.number}"
    calls.clear()
    again = train_seeds(sentence_learner(), job(tiny, out), [3, 4, 5])
    assert calls == [str(many.best.number)]  # read again to be saved
    assert [one.figures for one in again.members] == [one.figures for one in many.members]
    assert (out / "model.safetensors").read_bytes() == weights[many.best.number]


def test_seeds_that_were_stopped_resume(tiny: str, tmp_path: Path, calls: list[str]) -> None:
    stop = StopRequest()

    def watch(look: Progress) -> None:
        if calls == ["0", "1"] and look.step == 5:
            stop.received = "SIGTERM"

    out = tmp_path / "out"
    cut = train_seeds(
        sentence_learner(), job(tiny, out), [0, 1], execution=Execution(stop=stop), watch=watch
    )
    assert (cut.outcome.status, cut.best) == ("stopped", None)
    assert not (out / "config.json").exists()
    whole = train_seeds(sentence_learner(), job(tiny, out), [0, 1])
    straight = train_seeds(sentence_learner(), job(tiny, tmp_path / "straight"), [0, 1])
    assert [one.figures for one in whole.members] == [one.figures for one in straight.members]
    saved = [(folder / "model.safetensors").read_bytes() for folder in (out, tmp_path / "straight")]
    assert saved[0] == saved[1]


def test_seeds_need_dev_rows_to_choose_by(tiny: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="compared by dev rows, and there are none; give --dev"):
        train_seeds(sentence_learner(), with_rows(job(tiny, tmp_path), dev=None), [0, 1])


def test_the_command_prints_mean_and_interval(
    tiny: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = sentence_rows("scores")
    assert data.targets is not None
    lines = [f"{a}\t{b}\t{c}\n" for (a, b), c in zip(data.rows, data.targets, strict=True)]
    (tmp_path / "pairs.tsv").write_text("".join(lines))
    words = ["sentences", "train", str(tmp_path / "pairs.tsv"), "--model", tiny, "--steps", "3"]
    assert run(*words, "--seeds", "2", "--batch", "8", "--out", tmp_path / "out") == 0
    printed = capsys.readouterr().out
    record = json.loads((tmp_path / "out" / "proof.json").read_text())
    assert [one["seed"] for one in record["seeds"]] == [0, 1]
    assert f"dev over 2 seeds; {record['chosen']} was chosen:" in printed
    mean = sum(one["figures"]["spearman"] for one in record["seeds"]) / 2
    assert f"spearman: mean {mean:.4f}" in printed
    chosen = tmp_path / "out" / "seeds" / str(record["chosen"])
    assert (
        record["training"]["best_step"]
        == json.loads((chosen / "result.json").read_text())["best"]["step"]
    )
