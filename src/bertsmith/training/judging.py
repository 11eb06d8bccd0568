"""Held-out text judged as the run asks for it: by losses, or by what is predicted."""

from __future__ import annotations

from bertsmith.training.evaluate import Evaluation, evaluate
from bertsmith.training.run import Run


def judged(run: Run) -> Evaluation | None:
    """What held-out text says of the model as it is now; None when there is no such text."""
    if run.judge is not None:
        return run.judge()
    return evaluate(run.model, run.work, run.ranks, device=run.device, precision=run.precision)
