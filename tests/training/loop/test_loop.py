"""The loop: same seed same numbers, resume without a seam, logs, budgets, averages."""

from __future__ import annotations

import json
import logging
import os
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from toy_training import ToyModel, ToyWork, final_state, log_lines, toy_run, train_heeding_signals

from bertsmith.training.checkpoints.checkpoint import SaveSettings
from bertsmith.training.loop.averaging import AveragingSettings, TailAverage
from bertsmith.training.loop.evaluate import Evaluation, EvaluationSettings
from bertsmith.training.loop.log import LogSettings, RunLog
from bertsmith.training.loop.loop import train
from bertsmith.training.loop.progress import Progress
from bertsmith.training.loop.run import Run
from bertsmith.training.loop.schedule import StableSettings
from bertsmith.training.optimizers.optimizers import AdamWSettings, LambSettings, MuonSettings


def stopping_at(step: int, number: int = signal.SIGTERM) -> Any:
    """A watcher that sends this process a signal after a step."""

    def watch(look: Progress) -> None:
        if look.step == step:
            os.kill(os.getpid(), number)

    return watch


def test_the_same_seed_gives_the_same_bits_and_another_does_not(tmp_path: Path) -> None:
    ends = []
    for name in "abc":
        torch.randn(7)  # whatever happened before in this process
        train(toy_run(tmp_path / name))
        ends.append(final_state(tmp_path / name))
    train(toy_run(tmp_path / "other", seed=12))
    assert ends[0] == ends[1] == ends[2]
    assert final_state(tmp_path / "other")["tensors"] != ends[0]["tensors"]


@pytest.mark.parametrize(
    "optimizer",
    [AdamWSettings(lr=5e-3), LambSettings(lr=5e-3), MuonSettings(lr=5e-3)],
    ids=lambda settings: settings.name,
)
@pytest.mark.parametrize("at", [1, 8, 15, 23])
def test_a_stopped_run_goes_on_without_a_seam(tmp_path: Path, optimizer: Any, at: int) -> None:
    train(toy_run(tmp_path / "straight", optimizer=optimizer))
    stopped = train_heeding_signals(
        toy_run(tmp_path / "cut", optimizer=optimizer, watch=stopping_at(at))
    )
    assert (stopped.status, stopped.signal, stopped.exit_code) == ("stopped", "SIGTERM", 75)
    # The signal comes after the flags of its step were read: one more step may pass.
    assert stopped.step in (at, at + 1)
    outcome = train(toy_run(tmp_path / "cut", optimizer=optimizer))
    assert outcome.status == "finished"
    assert final_state(tmp_path / "cut") == final_state(tmp_path / "straight")


def test_what_comes_after_a_restored_checkpoint_equals_what_came_after_it_was_saved(
    tmp_path: Path,
) -> None:
    every_step = LogSettings(every=1)
    train(toy_run(tmp_path / "a", log=every_step, save=SaveSettings(every=5, keep=9)))
    straight = log_lines(tmp_path / "a")
    for newer in ("step-00000015", "step-00000020", "step-00000024"):
        for file in (tmp_path / "a" / "checkpoints" / newer).iterdir():
            file.unlink()
    work = ToyWork()
    train(toy_run(tmp_path / "a", log=every_step, workload=work))
    assert log_lines(tmp_path / "a") == straight
    assert work.shares == [step / 24 for step in range(10, 24)]


def test_a_finished_run_again_changes_nothing(tmp_path: Path) -> None:
    first = train(toy_run(tmp_path))
    before = final_state(tmp_path)
    model = ToyModel(seed=5)
    again = train(toy_run(tmp_path, model=model))
    assert final_state(tmp_path) == before
    assert again.evaluation is not None
    assert first.evaluation is not None
    assert again.evaluation.losses == first.evaluation.losses


def test_the_held_out_loss_falls(tmp_path: Path) -> None:
    run = toy_run(tmp_path, steps=150, evaluation=EvaluationSettings(every=10))
    outcome = train(run)
    curve = [line["losses"]["word"] for line in log_lines(tmp_path) if line["kind"] == "eval"]
    assert outcome.evaluation is not None
    assert outcome.evaluation.losses["word"] < 0.7 * curve[0]
    assert outcome.evaluation.perplexity["word"] < 20
    assert outcome.evaluation.accuracy["word"] > 0.3


def test_the_log_has_each_step_once_also_after_a_torn_line(tmp_path: Path) -> None:
    train_heeding_signals(toy_run(tmp_path, watch=stopping_at(13)))
    with (tmp_path / "log.jsonl").open("a") as file:
        file.write('{"kind": "train", "step": 99, "losses": {}}\n{"kind": "tra')
    train(toy_run(tmp_path))
    steps = [line["step"] for line in log_lines(tmp_path) if line["kind"] == "train"]
    assert steps == [3, 6, 9, 12, 15, 18, 21, 24]
    assert sum(line["line_steps"] for line in log_lines(tmp_path) if line["kind"] == "train") == 24


def test_numbers_that_json_lacks_are_null(tmp_path: Path) -> None:
    log = RunLog(tmp_path / "log.jsonl", step=0)
    log.write("eval", {"step": 0, "perplexity": {"mlm": float("inf")}})
    log.close()
    assert json.loads((tmp_path / "log.jsonl").read_text())["perplexity"] == {"mlm": None}


def test_a_watcher_sees_every_step_and_may_lose_its_terminal(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[Progress] = []

    def watch(look: Progress) -> None:
        seen.append(look)
        if look.step == 5:
            raise OSError(5, "Input/output error")

    outcome = train(toy_run(tmp_path, watch=watch))
    assert outcome.status == "finished"
    assert [look.step for look in seen] == [1, 2, 3, 4, 5]
    assert seen[-1].tokens == 5 * 6 * 8
    assert seen[-1].tokens_per_second > 0
    assert set(seen[-1].losses) == {"word", "pair"}
    assert "progress" in caplog.text


class Clock:
    """Time that passes only while somebody sleeps, however busy the machine is."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock.monotonic)
    monkeypatch.setattr(time, "sleep", clock.sleep)
    return clock


def test_a_budget_is_kept_and_the_whole_schedule_fits_into_it(tmp_path: Path, clock: Clock) -> None:
    work = ToyWork(pause=0.002)
    run = toy_run(tmp_path, workload=work, schedule=StableSettings(budget=1.5))
    began = clock.now
    outcome = train(run)
    assert 1.45 < outcome.seconds <= clock.now - began <= 1.5
    lines = [line for line in log_lines(tmp_path) if line["kind"] == "train"]
    assert lines[-1]["share"] > 0.98
    assert lines[-1]["rate"] < 0.05 * max(line["rate"] for line in lines)
    assert work.shares == sorted(work.shares)
    assert log_lines(tmp_path)[0]["kind"] == "eval"


def test_the_clock_goes_on_from_the_checkpoint(tmp_path: Path, clock: Clock) -> None:
    run = toy_run(tmp_path, pause=0.002, schedule=StableSettings(budget=1.2))
    stopped = train_heeding_signals(replace(run, watch=stopping_at(5)))
    assert stopped.status == "stopped"
    clock.sleep(0.3)  # while nothing runs no budget is used
    ended = train(replace(run, model=ToyModel()))
    assert ended.status == "finished"
    assert stopped.seconds < 0.1
    assert 1.15 < ended.seconds <= 1.2
    assert ended.step > stopped.step


def test_an_error_in_the_making_of_batches_ends_the_run_as_itself(tmp_path: Path) -> None:
    class Broken(ToyWork):
        def micro_batches(self, step: int, share: float) -> list[Any]:
            if step == 7:
                raise ZeroDivisionError("row 42 is odd")
            return super().micro_batches(step, share)

    with pytest.raises(ZeroDivisionError, match="row 42"):
        train(toy_run(tmp_path, workload=Broken()))
    assert train(toy_run(tmp_path)).status == "finished"


def test_the_tail_average_is_the_mean_of_the_weights_at_its_steps() -> None:
    model = ToyModel()
    average = TailAverage(model, AveragingSettings(tail=0.5, every=2))
    kept = []
    for step in range(1, 11):
        with torch.no_grad():
            model.dense.weight.fill_(float(step))
        average.update(step, step / 10)
        if step >= 5 and step % 2 == 0:
            kept.append(step)
    before = average.apply()
    assert average.count == len(kept)
    expected = torch.full_like(model.dense.weight, sum(kept) / len(kept))
    torch.testing.assert_close(model.dense.weight.detach(), expected)
    average.put(before)
    assert float(model.dense.weight[0, 0].detach()) == 10.0


def test_the_better_of_last_and_average_is_left_in_the_model(tmp_path: Path) -> None:
    run = toy_run(tmp_path, steps=60, optimizer=AdamWSettings(lr=5e-2))
    outcome = train(run)
    assert outcome.last is not None
    assert outcome.average is not None
    best = min(outcome.last.total, outcome.average.total)
    assert outcome.evaluation is not None
    assert outcome.evaluation.total == best


def test_saving_by_time_saves_between_the_steps_that_are_due(tmp_path: Path) -> None:
    saves: list[int] = []

    def watch(look: Progress) -> None:
        saves.append(len(list((tmp_path / "checkpoints").glob("step-*"))))

    settings = SaveSettings(every=1_000, seconds=0.05, keep=50)
    train(toy_run(tmp_path, pause=0.01, save=settings, watch=watch))
    assert max(saves) >= 3


def test_the_loop_leaves_signals_alone_and_a_command_watches_them_only_while_training(
    tmp_path: Path,
) -> None:
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = {n: signal.getsignal(n) for n in numbers}
    during: list[Any] = []

    def watch(look: Progress) -> None:
        during.append([signal.getsignal(n) for n in numbers])

    train(toy_run(tmp_path / "library", watch=watch))
    assert all(handlers == list(before.values()) for handlers in during)
    during.clear()
    train_heeding_signals(toy_run(tmp_path / "command", watch=watch))
    assert all(handler not in before.values() for handlers in during for handler in handlers)
    assert {n: signal.getsignal(n) for n in before} == before


def test_an_interrupt_in_a_notebook_is_an_exception_and_the_run_resumes(tmp_path: Path) -> None:
    train(toy_run(tmp_path / "straight"))
    for step in (7, 13):  # a second one does not end the process either
        with pytest.raises(KeyboardInterrupt):
            train(toy_run(tmp_path / "cut", watch=stopping_at(step, signal.SIGINT)))
    train(toy_run(tmp_path / "cut"))
    assert final_state(tmp_path / "cut") == final_state(tmp_path / "straight")


def test_a_run_in_memory_learns_the_same_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    in_memory = toy_run(None)
    outcome = train(in_memory)
    assert list(tmp_path.iterdir()) == []
    on_disk = toy_run(tmp_path / "run")
    assert train(on_disk).evaluation == outcome.evaluation
    other = dict(on_disk.model.named_parameters())
    assert all(torch.equal(p, other[name]) for name, p in in_memory.model.named_parameters())


def test_a_run_without_held_out_text_ends_without_figures(tmp_path: Path) -> None:
    class Blind(ToyWork):
        def held_out(self) -> list[Any]:
            return []

    outcome = train(toy_run(tmp_path, workload=Blind()))
    assert outcome.evaluation is None
    assert outcome.chosen == "average"


def test_going_on_is_logged_with_its_place(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run: Run = toy_run(tmp_path, watch=stopping_at(8))
    train_heeding_signals(run)
    with caplog.at_level(logging.INFO, logger="bertsmith"):
        train(toy_run(tmp_path))
    assert "resuming from" in caplog.text


def test_curves_go_to_tensorboard_when_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points: dict[str, list[int]] = {}

    class FakeBoard:
        def add_scalar(self, tag: str, value: float, step: int) -> None:
            points.setdefault(tag, []).append(step)

        def close(self) -> None:
            points["closed"] = []

    monkeypatch.setattr(
        "bertsmith.training.loop.journal.open_board", lambda folder, step: FakeBoard()
    )
    train(toy_run(tmp_path))
    assert points["train/loss/word"] == [3, 6, 9, 12, 15, 18, 21, 24]
    assert points["held_out/loss/word"] == [7, 14, 21, 24, 24]
    assert "closed" in points


def test_an_infinite_perplexity_is_null_in_every_file(tmp_path: Path) -> None:
    def no_constant(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    huge = Evaluation(losses={"part": 1e6}, accuracy={}, counts={"part": 1}, total=1e6)
    train(toy_run(tmp_path, steps=8, evaluate=lambda: huge))
    result = json.loads((tmp_path / "result.json").read_text(), parse_constant=no_constant)
    assert result["last"]["perplexity"] == {"part": None}
    assert result["last"]["losses"] == {"part": 1e6}
    for line in (tmp_path / "log.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=no_constant)
