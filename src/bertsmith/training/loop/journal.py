"""What a run reports: log lines, TensorBoard curves and progress, all by the first rank."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from bertsmith.errors import WriteError
from bertsmith.training.execution.rank_sync import on_first
from bertsmith.training.loop.evaluate import Evaluation
from bertsmith.training.loop.log import Board, RunLog, open_board
from bertsmith.training.loop.progress import Progress, Speed, Watcher
from bertsmith.training.loop.run import Run
from bertsmith.training.loop.schedule import Pace
from bertsmith.training.loop.state import TrainState
from bertsmith.training.loop.step import StepSums

log = logging.getLogger(__name__)


def add_step(window: dict[str, float], sums: StepSums) -> None:
    """Add a step to the unfinished line."""
    for name, value in {**sums.values, "tokens": sums.tokens, "steps": 1}.items():
        window[name] = window.get(name, 0.0) + value
    window["norm"] = max(window.get("norm", 0.0), sums.norm)


def figures(sums: Mapping[str, float]) -> tuple[dict[str, float], dict[str, float]]:
    """The mean loss and the accuracy of each part that predicted anything."""
    losses, accuracy = {}, {}
    for key, count in sums.items():
        kind, _, name = key.partition(":")
        if kind == "count" and count:
            losses[name] = sums[f"sum:{name}"] / count
        if kind == "scored" and count:
            accuracy[name] = sums[f"correct:{name}"] / count
    return losses, accuracy


def line(window: Mapping[str, float], *, rate: float) -> dict[str, Any]:
    """The values of a finished line."""
    losses, accuracy = figures(window)
    return {
        "losses": losses,
        "accuracy": accuracy,
        "rate": rate,
        "norm": window.get("norm", 0.0),
        "line_tokens": int(window.get("tokens", 0)),
        "line_steps": int(window.get("steps", 0)),
    }


class Journal:
    """Keeps `log.jsonl`, TensorBoard files if there is TensorBoard, and the watcher informed."""

    def __init__(self, run: Run, state: TrainState, pace: Pace) -> None:
        self._run = run
        self._state = state
        self._pace = pace
        self._speed = Speed()
        self._watch: Watcher | None = run.watch if run.execution.ranks.is_first else None
        self._log: RunLog | None = None
        self._board: Board | None = None
        if run.folder is not None:
            path = run.folder / "log.jsonl"
            self._log = on_first(run.execution.ranks, lambda: RunLog(path, step=state.step))
            if self._log is not None and run.log.tensorboard:
                self._board = open_board(run.folder / "tensorboard", step=state.step)

    def resumed(self) -> None:
        """Settings that are not what they were when the checkpoint was written."""
        now = [c for c in self._state.changes if c["step"] == self._state.step]
        if now:
            self.write("changed", {"changes": now})

    def begin_step(self) -> None:
        """A step begins now."""
        self._speed.start()

    def end_step(self, sums: StepSums, *, rate: float, last: bool) -> None:
        """A step is done: add it to its line, write the line when it is full."""
        state = self._state
        speed = self._speed.add(sums.tokens)
        add_step(state.window, sums)
        if last or state.step % self._run.log.every == 0:
            values = line(state.window, rate=rate)
            times = {"tokens": state.tokens, "tokens_per_second": speed, "seconds": state.clock}
            self.write("train", {"share": state.share, **values, **times})
            state.window.clear()
            self._draw("train/loss", values["losses"])
            self._draw("train/accuracy", values["accuracy"])
            self._draw("train", {"rate": rate, "tokens_per_second": speed})
        self._look(sums, rate, speed)

    def evaluated(
        self,
        kind: str,
        evaluation: Evaluation,
        *,
        weights: str = "last",
        stages: Sequence[str] = (),
    ) -> None:
        """Held-out figures; `stages` names those that ended here."""
        ended = {"stages": list(stages)} if stages else {}
        self.write(kind, {"weights": weights, **ended, **evaluation.to_json()})
        self._draw("held_out/loss", evaluation.losses)
        self._draw("held_out/accuracy", evaluation.accuracy)

    def note(self, kind: str, message: str) -> None:
        """A remark; one that cannot be written is only logged, as there is worse to report."""
        try:
            self.write(kind, {"message": message})
        except WriteError as fault:
            log.warning("the log has no room for a remark: %s", fault)

    def write(self, kind: str, values: Mapping[str, object]) -> None:
        """A line of the log."""
        if self._log is not None:
            self._log.write(kind, {"step": self._state.step, **values})

    def sync(self) -> None:
        """Bring the log to the disk."""
        if self._log is not None:
            self._log.sync()

    def close(self) -> None:
        """Close all files."""
        if self._log is not None:
            self._log.close()
        if self._board is not None:
            self._board.close()

    def _draw(self, group: str, values: Mapping[str, float]) -> None:
        if self._board is not None:
            for name, value in values.items():
                self._board.add_scalar(f"{group}/{name}", value, self._state.step)

    def _look(self, sums: StepSums, rate: float, speed: float) -> None:
        if self._watch is None:
            return
        state = self._state
        losses, accuracy = figures({**sums.values})
        look = Progress(
            step=state.step,
            steps=self._run.schedule.steps,
            share=state.share,
            rate=rate,
            tokens=state.tokens,
            tokens_per_second=speed,
            seconds=state.clock,
            left=self._pace.left(state.step, state.clock),
            losses=losses,
            accuracy=accuracy,
        )
        try:
            self._watch(look)
        except OSError as fault:  # the terminal is gone; training is not
            log.warning("the progress display failed and is off: %s", fault)
            self._watch = None
