"""Early stopping: the best weights so far by a metric of held-out data."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import Field
from torch import Tensor, nn

from bertsmith.config import Settings
from bertsmith.errors import unknown
from bertsmith.training.loop.averaging import WeightCopy
from bertsmith.training.loop.evaluate import Evaluation

Better = Callable[[str, float, float], bool]
"""Whether of a metric (its name) the first value is better than the second."""


def larger(name: str, value: float, other: float) -> bool:
    """For metrics of which more is better; no number is worse than any."""
    return value > other or (math.isnan(other) and not math.isnan(value))


class BestSettings(Settings):
    """Which figure decides (the task's main one if none is named), and how long to wait for it."""

    figure: str | None = None
    patience: Annotated[int, Field(gt=0)] | None = None  # evaluations without a better one


class BestWeights(WeightCopy):
    """A copy of the weights at the best evaluation; does nothing when `settings` is None."""

    def __init__(
        self, model: nn.Module, settings: BestSettings | None, better: Better = larger
    ) -> None:
        super().__init__(model)
        self._better = better
        self._settings = settings
        self.facts: dict[str, Any] = {}
        """{}, or of the best one: step, which weights, figure, evaluation; how many evaluations
        were `waited` since, and the step of the last one `offered`."""

    @property
    def evaluation(self) -> Evaluation | None:
        """The best one so far."""
        return Evaluation.from_json(self.facts["evaluation"]) if self.facts else None

    @property
    def is_over(self) -> bool:
        """Whether nothing better came for so long that training ends."""
        patience = self._settings.patience if self._settings else None
        return patience is not None and self.facts.get("waited", 0) >= patience

    def offer(self, step: int, evaluation: Evaluation, *, weights: str = "last") -> None:
        """Keep the weights in the model if their figure is the best so far, or equal at less loss.

        Few held-out rows soon agree on one accuracy; the loss then decides.
        The `last` ones of a step count once; their average may follow at the same step.
        """
        if self._settings is None:
            return
        if weights == "last" and self.facts.get("offered") == step:
            return
        name = self._settings.figure or next(iter(evaluation.figures))
        if name not in evaluation.figures:
            raise unknown("figure of this task", name, evaluation.figures)
        if not self._is_better(name, evaluation):
            self.facts = {**self.facts, "waited": self.facts["waited"] + 1, "offered": step}
            return
        self._copy = {name: w.detach().clone() for name, w in self._weights().items()}
        self.facts = {"step": step, "weights": weights, "figure": name}
        self.facts |= {"waited": 0, "offered": step, "evaluation": evaluation.to_json()}

    def _is_better(self, name: str, evaluation: Evaluation) -> bool:
        best = self.evaluation
        if best is None:
            return True
        value, before = evaluation.figures[name], best.figures[name]
        if self._better(name, value, before):
            return True
        return value == before and evaluation.total < best.total

    def apply(self) -> None:
        """Put the best weights into the model."""
        self.put(self._copy)

    def load(self, weights: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
        """Take over what a checkpoint holds."""
        self.take_over(weights)
        self.facts = dict(facts)

    def _weights(self) -> dict[str, Tensor]:
        """Trained parameters, and buffers that training moves (batch norm)."""
        stored = self._model.state_dict().keys()
        buffers = {n: b for n, b in self._model.named_buffers() if n in stored}
        return {**super()._weights(), **buffers}
