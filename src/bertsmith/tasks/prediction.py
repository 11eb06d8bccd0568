"""Predictions: what a model returns for one example."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar


@dataclass(frozen=True, slots=True)
class PredictedSpan:
    """A labeled piece of the text: `text == input[start:end]`.

    The confidence is the probability of its least certain tag, an upper bound of its own. Equality
    ignores it.
    """

    start: int
    end: int
    label: str
    text: str
    confidence: float | None = field(default=None, compare=False)

    def to_json(self) -> dict[str, Any]:
        """JSON values; a gold span has no confidence."""
        values = asdict(self)
        if self.confidence is None:
            del values["confidence"]
        else:
            values["confidence"] = round(self.confidence, 6)
        return values


@dataclass(frozen=True, slots=True)
class PredictedAnswer:
    """A piece of the context that answers a question; `text` is "" when there is no answer."""

    text: str
    start: int
    end: int
    score: float


Kind = TypeVar("Kind")
Value = str | float | int | tuple[str, ...] | tuple[PredictedSpan, ...] | PredictedAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """The prediction of a task for one example.

    `value` is a label, a tuple of labels, a number, spans, an answer or the number of a choice.
    `probabilities` are keyed by label where the task has labels. `cut` tokens were truncated.
    `tags` are those of the units (tagging); `others` are further answers, best first (questions).
    """

    value: Value
    probabilities: Mapping[str, float] = field(default_factory=dict)
    confidence: float | None = None
    cut: int = 0
    tags: tuple[str, ...] = ()
    others: tuple[PredictedAnswer, ...] = ()

    def value_as(self, kind: type[Kind]) -> Kind:
        """The value, if it has this type."""
        if not isinstance(self.value, kind):
            raise TypeError(f"a prediction of {kind.__name__} expected, not {self.value!r}")
        return self.value

    def to_json(self) -> dict[str, Any]:
        """JSON values; fields that the task does not use are left out."""
        value: Any = self.value
        if isinstance(value, PredictedAnswer):
            value = asdict(value)
        elif isinstance(value, tuple):
            value = [one.to_json() if isinstance(one, PredictedSpan) else one for one in value]
        values: dict[str, Any] = {"prediction": value}
        if self.confidence is not None:
            values["confidence"] = round(self.confidence, 6)
        if self.probabilities:
            values["probabilities"] = {k: round(v, 6) for k, v in self.probabilities.items()}
        if self.tags:
            values["tags"] = list(self.tags)
        if self.others:
            values["others"] = [asdict(one) for one in self.others]
        if self.cut:
            values["tokens_cut"] = self.cut
        return values
