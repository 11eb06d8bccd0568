"""The training loop: the same run again resumes, bit for bit if its schedule counts steps."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Sequence
from contextlib import ExitStack

from bertsmith.errors import DivergedError, WriteError
from bertsmith.files.folder_lock import FolderLock
from bertsmith.training.checkpoints.checkpoint import CHECKPOINTS
from bertsmith.training.checkpoints.saving import Saver
from bertsmith.training.execution.rank_sync import on_first
from bertsmith.training.loop.averaging import TailAverage
from bertsmith.training.loop.best import BestWeights
from bertsmith.training.loop.finalize import finalize, stage_entry
from bertsmith.training.loop.journal import Journal
from bertsmith.training.loop.prefetch import DEPTH, Prefetch
from bertsmith.training.loop.run import Outcome, Run, evaluate_run
from bertsmith.training.loop.schedule import Pace
from bertsmith.training.loop.step import compute_gradients
from bertsmith.training.optimizers.optimizers import build_optimizer

log = logging.getLogger(__name__)

DISK_SPEED = 200e6  # bytes per second, a guess at the first checkpoint's time


def train(run: Run) -> Outcome:
    """Train until the schedule ends or `run.execution.stop` is set.

    Raises WriteError if a file cannot be written and DivergedError if a number is not finite; what
    was saved before stays good in both cases.
    """
    with ExitStack() as held:
        held.enter_context(run.execution.ranks.watched())
        if run.folder is not None:
            lock = FolderLock(run.folder, work="run", instead="folder")
            on_first(run.execution.ranks, lambda: held.enter_context(lock))
        loop = _Loop(run)
        held.callback(loop.journal.close)
        return loop.run_to_end()


class _Loop:
    """The moving parts of one call of `train`."""

    def __init__(self, run: Run) -> None:
        self._run = run
        run.model.train()
        self._optimizers = build_optimizer(run.model, run.optimizer)
        self._average = TailAverage(run.model, run.averaging)
        self._best = BestWeights(run.model, run.best, run.better)
        self._saver = Saver(run, self._optimizers, self._average, self._best)
        self._state = self._saver.restore()
        self._pace = Pace(run.schedule)
        self._pace.reserve = self._state.reserve or self._saver.size() / DISK_SPEED
        self._used = self._state.clock + run.spent
        self._started = time.monotonic()
        self._saved_at = self._state.clock
        self._save_seconds = self._saver.size() / DISK_SPEED
        self._stop = False
        self.journal = Journal(run, self._state, self._pace)
        self.journal.resumed()

    def run_to_end(self) -> Outcome:
        """All steps that are left, then the last evaluation."""
        state = self._state
        by_clock = self._run.schedule.budget is not None
        if state.step == 0 and (by_clock or self._run.evaluate_start):
            self._evaluate()  # shows where training begins, and how long an evaluation takes
        with Prefetch(self._run.workload) as ahead:
            for step in range(state.step, state.step + DEPTH):
                self._request(ahead, step)
            while not self._stop and not self._is_over():
                self._step(ahead)
        if self._stop:
            received = self._run.execution.stop.received or "SIGTERM"
            log.info("%s: saved at step %d", received, state.step)
            return Outcome(
                status="stopped",
                step=state.step,
                tokens=state.tokens,
                seconds=state.clock,
                signal=received,
            )
        return finalize(self._run, state, self._average, self._best, self.journal)

    def _step(self, ahead: Prefetch) -> None:
        run, state = self._run, self._state
        self.journal.begin_step()
        batches = ahead.take()
        self._request(ahead, state.step + DEPTH)
        self._optimizers.set_rate(self._pace.factor(state.step, state.clock))
        rate = self._optimizers.rate
        self._optimizers.zero_grad()
        try:
            sums = compute_gradients(run, batches, step=state.step, rate=rate)
        except DivergedError as fault:
            raise self._rescued(fault) from fault
        self._optimizers.step()
        state.step += 1
        state.tokens += sums.tokens
        before = state.share
        self._agree()
        self._average.update(state.step, state.share)
        over = self._is_over()
        self.journal.end_step(sums, rate=rate, last=over)
        ended = [name for end, name in run.stages.items() if before < end <= state.share]
        self._pause(over=over, ended=ended)

    def _pause(self, *, over: bool, ended: Sequence[str]) -> None:
        """Evaluate and save, if it is time; the end of a stage is one."""
        state, settings = self._state, self._run
        every = settings.evaluation.every
        due = every is not None and state.step % every == 0
        if not over and (due or ended):
            self._evaluate(ended)
            self._agree()  # it may have taken long
            over = self._is_over()
        waited = state.clock - self._saved_at
        due = state.step % settings.save.every == 0 or (
            settings.save.seconds is not None and waited >= settings.save.seconds
        )
        if over or due or self._stop:
            self._save("end" if over else "signal" if self._stop else "time")

    def _agree(self) -> None:
        """The first rank's clock, and whether any rank received a stop request."""
        ranks, state = self._run.execution.ranks, self._state
        own = {
            "clock": self._used + time.monotonic() - self._started if ranks.is_first else 0.0,
            "reserve": self._pace.reserve if ranks.is_first else 0.0,
            "stop": float(self._run.execution.stop.received is not None),
        }
        agreed = ranks.sum_counts(own)
        state.clock = agreed["clock"]
        state.reserve = self._pace.reserve = agreed["reserve"]
        state.share = max(state.share, self._pace.share(state.step, state.clock))
        self._stop = agreed["stop"] > 0

    def _is_over(self) -> bool:
        """Whether the schedule has ended, or nothing better came for too long."""
        return self._best.is_over or self._pace.is_over(self._state.step, self._state.clock)

    def _request(self, ahead: Prefetch, step: int) -> None:
        """Request a step ahead of time; by the clock, with the share that is known now."""
        steps = self._run.schedule.steps
        if steps is None:
            ahead.request(step, self._state.share)
        elif step < steps:
            ahead.request(step, step / steps)

    def _evaluate(self, ended: Sequence[str] = ()) -> None:
        began = time.monotonic()
        run = self._run
        evaluation = evaluate_run(run)
        took = time.monotonic() - began
        self._pace.reserve = self._save_seconds + took * (2 if run.averaging.tail else 1)
        if evaluation is None:
            return
        for name in ended:
            self._state.stages.append(stage_entry(name, self._state, evaluation))
        self.journal.evaluated("eval", evaluation, stages=ended)
        if not math.isfinite(evaluation.total):
            fault = DivergedError(
                f"the held-out loss is {evaluation.total} at step {self._state.step:,}"
            )
            raise self._rescued(fault)
        self._best.offer(self._state.step, evaluation)

    def _save(self, reason: str) -> None:
        began = time.monotonic()
        self.journal.sync()
        self._saver.save(self._state, reason=reason)
        self._saved_at = self._state.clock
        self._save_seconds = time.monotonic() - began

    def _rescued(self, fault: DivergedError) -> DivergedError:
        """Save the state before the broken step, if it is finite, and add that to the error."""
        self._optimizers.zero_grad()
        try:
            self._save("diverged")
            place = f"the state before it is saved at step {self._state.step:,}"
        except (DivergedError, WriteError) as other:
            place = str(other)
        message = f"{fault}. {place}. Lower the learning rate, or look at those examples"
        if self._run.folder is not None:
            newest = self._run.folder / CHECKPOINTS
            message += f"; to resume from an earlier state, remove the newest folder in {newest}"
        self.journal.note("diverged", message)
        return DivergedError(message)
