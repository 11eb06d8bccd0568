"""The end of a run: evaluates the last weights and their average, and chooses the best."""

from __future__ import annotations

import math
from typing import Any, Literal

from bertsmith.errors import DivergedError
from bertsmith.files.strict_json import write_json
from bertsmith.training.checkpoints.saving import RESULT
from bertsmith.training.execution.rank_sync import on_first
from bertsmith.training.loop.averaging import TailAverage
from bertsmith.training.loop.best import BestWeights
from bertsmith.training.loop.evaluate import Evaluation
from bertsmith.training.loop.journal import Journal
from bertsmith.training.loop.run import Outcome, Run, evaluate_run
from bertsmith.training.loop.state import TrainState


def finalize(
    run: Run, state: TrainState, average: TailAverage, best: BestWeights, journal: Journal
) -> Outcome:
    """Evaluate the last weights and their average, choose the better, and write result.json.

    With early stopping, both compete with the best weights so far.
    """
    last = _evaluated(run, journal, "last")
    if last is not None:
        best.offer(state.step, last)
    mean: Evaluation | None = None
    chosen: Literal["last", "average", "best"] = "last"
    if average.count:
        before = average.apply()
        mean = _evaluated(run, journal, "average")
        if mean is not None:
            best.offer(state.step, mean, weights="average")
        if last is None or mean is None or mean.total <= last.total:
            chosen = "average"
        else:
            average.put(before)
    if last is not None and run.best is not None:
        best.apply()
        chosen = "best"
    final = {"last": last, "average": mean, "best": best.evaluation}[chosen]
    ended = [name for end, name in run.stages.items() if end >= 1.0]
    if final is not None:
        state.stages += [stage_entry(name, state, final) for name in ended]
    outcome = Outcome(
        status="finished",
        step=state.step,
        tokens=state.tokens,
        seconds=state.clock,
        last=last,
        average=mean,
        best=best.evaluation,
        chosen=chosen,
        stages=tuple(state.stages),
    )
    chosen_at = {name: best.facts.get(name) for name in ("step", "weights")}
    result = _result(outcome, chosen_at, rate=run.optimizer.lr)
    journal.write("end", result)
    journal.sync()
    if run.folder is not None:
        path = run.folder / RESULT
        on_first(run.execution.ranks, lambda: write_json(path, result))
    return outcome


def stage_entry(name: str, state: TrainState, evaluation: Evaluation) -> dict[str, Any]:
    """The held-out figures at the end of a stage, for the record of the run."""
    return {"stage": name, "step": state.step, "share": state.share, **evaluation.to_json()}


def _evaluated(run: Run, journal: Journal, weights: str) -> Evaluation | None:
    evaluation = evaluate_run(run)
    if evaluation is None:
        return None
    if not math.isfinite(evaluation.total):
        raise DivergedError(f"the held-out loss of the {weights} weights is not finite")
    journal.evaluated("final", evaluation, weights=weights)
    return evaluation


def _result(outcome: Outcome, chosen_at: dict[str, Any], *, rate: float) -> dict[str, Any]:
    return {
        "step": outcome.step,
        "rate": rate,
        "tokens": outcome.tokens,
        "seconds": outcome.seconds,
        "chosen": outcome.chosen,
        "last": outcome.last.to_json() if outcome.last else None,
        "average": outcome.average.to_json() if outcome.average else None,
        "best": {**chosen_at, **outcome.best.to_json()} if outcome.best else None,
        "stages": list(outcome.stages),
    }
