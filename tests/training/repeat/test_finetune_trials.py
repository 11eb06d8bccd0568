"""Several small runs: finished once, stored as long as nothing changes, with progress."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tiny_finetuning import SHORT, rows, tiny_job

from bertsmith.errors import ConfigError, InputFileError
from bertsmith.tasks.prediction import Prediction
from bertsmith.training.execution.execution import Execution
from bertsmith.training.kinds.labeled.learner import FinetuneJob, finetune, labeled_learner
from bertsmith.training.kinds.labeled.trials import finetune_trial
from bertsmith.training.loop.progress import Progress, Watcher
from bertsmith.training.loop.run import Outcome
from bertsmith.training.repeat.trials import (
    StudyProgress,
    Trial,
    TrialResult,
    job_key,
    read_result,
    run_trials,
    write_result,
)

LEARNER = labeled_learner()
LOOK = Progress(
    step=1,
    steps=2,
    share=0.5,
    rate=0.0,
    tokens=1,
    tokens_per_second=1.0,
    seconds=1.0,
    left=1.0,
    losses={},
    accuracy={},
)


class Counted:
    """A trial that counts how often it was run."""

    def __init__(self, name: str, fault: Exception | None = None) -> None:
        self.runs = 0
        self.name, self.fault = name, fault

    def trial(self, key: str = "1") -> Trial:
        return Trial(name=self.name, key=key, run=self.run)

    def run(self, watch: Watcher | None) -> TrialResult:
        if self.fault:
            raise self.fault
        if watch:
            watch(LOOK)
        self.runs += 1
        return TrialResult(name=self.name, figures={"accuracy": 0.5}, seconds=1.0)


def test_finished_runs_are_not_repeated_until_something_changes(tmp_path: Path) -> None:
    one, two = Counted("a"), Counted("b")
    looks: list[StudyProgress] = []
    first = run_trials([one.trial(), two.trial()], tmp_path, watch=looks.append)
    assert [row.name for row in first.rows] == ["a", "b"]
    assert [(look.number, look.of, look.share) for look in looks] == [(1, 2, 0.25), (2, 2, 0.75)]
    assert run_trials([one.trial(), two.trial()], tmp_path).rows == first.rows
    assert (one.runs, two.runs) == (1, 1)
    run_trials([one.trial("2"), two.trial()], tmp_path)
    assert (one.runs, two.runs) == (2, 1)
    (tmp_path / "finished" / "b.json").unlink()
    run_trials([one.trial("2"), two.trial()], tmp_path)
    assert (one.runs, two.runs) == (2, 2)


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"key": "1"}', b"\xff\xfe"])
def test_a_damaged_file_means_the_run_is_made_again(tmp_path: Path, damage: bytes) -> None:
    one = Counted("a")
    run_trials([one.trial()], tmp_path)
    (tmp_path / "finished" / "a.json").write_bytes(damage)
    run_trials([one.trial()], tmp_path)
    assert one.runs == 2


def test_an_error_ends_all_or_is_recorded(tmp_path: Path) -> None:
    bad, good = Counted("bad", fault=InputFileError("no such rows")), Counted("good")
    with pytest.raises(InputFileError):
        run_trials([bad.trial(), good.trial()], tmp_path)
    done = run_trials([bad.trial(), good.trial()], tmp_path, keep_going=True)
    assert done.failed == {"bad": "no such rows"}
    assert [row.name for row in done.rows] == ["good"]


def test_a_stopped_run_ends_the_rest_and_keeps_what_is_finished(tmp_path: Path) -> None:
    stop = Outcome(status="stopped", step=3, tokens=9, seconds=1.0, signal="SIGTERM")
    stopped = Trial(name="b", key="1", run=lambda watch: stop)
    after = Counted("c")
    done = run_trials([Counted("a").trial(), stopped, after.trial()], tmp_path)
    assert done.stopped is stop
    assert [row.name for row in done.rows] == ["a"]
    assert after.runs == 0


@pytest.mark.parametrize("names", [(), ("a", "a"), ("../a",), ("a b",)])
def test_names_are_checked(tmp_path: Path, names: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError):
        run_trials([Counted(name).trial() for name in names], tmp_path)


def test_answers_come_back_as_they_were(tmp_path: Path) -> None:
    said = [
        Prediction(value="yes", probabilities={"yes": 0.75, "no": 0.25}, confidence=0.75, cut=3),
        Prediction(value=("a", "b"), probabilities={"a": 0.5}),
        Prediction(value=1.2345678901234567),
        Prediction(value=2, confidence=0.5),
    ]
    figures = {"accuracy": 0.1 + 0.2, "mcc": float("nan")}
    tried = TrialResult(name="x", figures=figures, seconds=1.5, more={"n": 1}, answers=said)
    write_result(tmp_path / "x.json", tried, "key")
    found = read_result(tmp_path / "x.json", "x", "key")
    assert found is not None
    assert list(found.answers) == said
    assert found.figures == {"accuracy": 0.1 + 0.2, "mcc": None}
    assert (found.seconds, found.more) == (1.5, {"n": 1})
    assert read_result(tmp_path / "x.json", "x", "other") is None


def small(source: str, out: Path) -> FinetuneJob:
    return tiny_job(source, out, recipe=SHORT, train=rows(40), dev=rows(20, seed=1))


def test_a_run_of_fine_tuning_leaves_its_row_and_no_model(source: str, tmp_path: Path) -> None:
    job = small(source, tmp_path / "runs" / "one")
    done = run_trials([finetune_trial("one", job, Execution())], tmp_path)
    assert not job.out.exists()
    assert len(done.rows[0].answers) == 20
    assert 0 <= (done.rows[0].figures["accuracy"] or 0) <= 1
    again = run_trials([finetune_trial("one", job, Execution())], tmp_path)
    assert again.rows[0].figures == done.rows[0].figures
    assert again.rows[0].answers == tuple(
        replace(one, confidence=round(one.confidence or 0, 6), probabilities=_rounded(one))
        for one in done.rows[0].answers
    )


def test_what_a_stopped_run_with_other_settings_left_is_no_obstacle(
    source: str, tmp_path: Path
) -> None:
    job = small(source, tmp_path / "runs" / "one")
    longer = SHORT.model_copy(update={"plan": SHORT.plan.model_copy(update={"epochs": 2})})
    finetune(replace(job, recipe=longer))
    (job.out / "trial.key").write_text(job_key(LEARNER, replace(job, recipe=longer), Execution()))
    done = run_trials([finetune_trial("one", job, Execution())], tmp_path)
    fresh = run_trials([finetune_trial("one", job, Execution())], tmp_path / "fresh")
    assert done.rows[0].answers == fresh.rows[0].answers


def _rounded(one: Prediction) -> dict[str, float]:
    return {label: round(value, 6) for label, value in one.probabilities.items()}


def test_the_key_follows_all_that_decides_a_result(source: str, tmp_path: Path) -> None:
    job = small(source, tmp_path / "one")
    key = job_key(LEARNER, job, Execution())
    assert key == job_key(LEARNER, replace(job, out=tmp_path / "elsewhere"), Execution())
    rate = SHORT.model_copy(update={"optimizer": SHORT.optimizer.model_copy(update={"lr": 1e-5})})
    seed = SHORT.model_copy(update={"run": SHORT.run.model_copy(update={"seed": 5})})
    others = [
        job_key(LEARNER, replace(job, recipe=rate), Execution()),
        job_key(LEARNER, replace(job, recipe=seed), Execution()),
        job_key(LEARNER, replace(job, rows=replace(job.rows, train=rows(39))), Execution()),
        job_key(LEARNER, replace(job, rows=replace(job.rows, dev=rows(20, seed=2))), Execution()),
        job_key(LEARNER, job, Execution(), mark="other weights"),
    ]
    assert len({key, *others}) == 6
