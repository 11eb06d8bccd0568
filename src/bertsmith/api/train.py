"""A training of any kind, from its request to a folder with record and page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertsmith.api.observer import Observer, executing
from bertsmith.training.execution.stop import StopRequest
from bertsmith.training.kind import (
    TrainingKind,
    TrainingRequest,
    check_request,
    run_training,
)
from bertsmith.training.learner import Recipe, Result, Rows
from bertsmith.training.loop.run import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedModel:
    """The folder of a model, and how its training ended.

    `record` is what proof.json holds (figures with intervals, baselines, errors), `report` the page
    of it; both are None when training was stopped. Pre-training has curves alone, and no record.
    """

    folder: Path
    outcome: Outcome
    record: dict[str, Any] | None = None
    report: Path | None = None
    is_first: bool = True  # False in further processes of one run, which write nothing

    @property
    def metrics(self) -> dict[str, float]:
        """Metrics of the test rows, or of the dev rows where there is no test set."""
        record = self.record or {}
        part = record.get("test") or record.get("dev") or {}
        return dict(part.get("figures", {}))


def train(
    kind: TrainingKind[Recipe, Rows, Result],
    request: TrainingRequest,
    observer: Observer | None = None,
    *,
    stop: StopRequest | None = None,
) -> TrainedModel:
    """Read, train, evaluate and report; mistakes in recipe and model come before the reading."""
    recipe = kind.recipe(request)
    check_request(kind, request, recipe)
    with executing(recipe.run, request.out, observer, device=request.device, stop=stop) as (
        execution,
        audience,
    ):
        end = run_training(kind, request, recipe, execution=execution, audience=audience)
        return TrainedModel(
            folder=request.out,
            outcome=end.outcome,
            record=end.record,
            report=end.page,
            is_first=execution.ranks.is_first,
        )
