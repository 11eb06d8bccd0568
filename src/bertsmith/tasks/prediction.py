"""What a model says of one example."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Span:
    """A labeled piece of the text: `text == input[start:end]`.

    The confidence is the chance of its least certain tag: it cannot be right more often than that.
    Spans are equal if they say the same, however certainly.
    """

    start: int
    end: int
    label: str
    text: str
    confidence: float | None = field(default=None, compare=False)

    def to_json(self) -> dict[str, Any]:
        """Plain values; a span that nobody predicted has no confidence."""
        found = asdict(self)
        if self.confidence is None:
            del found["confidence"]
        else:
            found["confidence"] = round(self.confidence, 6)
        return found


@dataclass(frozen=True, slots=True)
class Answer:
    """A piece of the context that answers a question; `text` is "" when there is no answer."""

    text: str
    start: int
    end: int
    score: float


Value = str | float | int | tuple[str, ...] | tuple[Span, ...] | Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """The answer of a task for one example.

    `value` is a label, a tuple of labels, a number, spans, an Answer or the number of a choice.
    `probabilities` go by label where the task has some. `cut` tokens of the example were not read.
    `tags` are those of the units (tagging); `others` further answers, best first (questions).
    """

    value: Value
    probabilities: Mapping[str, float] = field(default_factory=dict)
    confidence: float | None = None
    cut: int = 0
    tags: tuple[str, ...] = ()
    others: tuple[Answer, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain values; what a task does not have is left out."""
        value: Any = self.value
        if isinstance(value, Answer):
            value = asdict(value)
        elif isinstance(value, tuple):
            value = [one.to_json() if isinstance(one, Span) else one for one in value]
        found: dict[str, Any] = {"prediction": value}
        if self.confidence is not None:
            found["confidence"] = round(self.confidence, 6)
        if self.probabilities:
            found["probabilities"] = {k: round(v, 6) for k, v in self.probabilities.items()}
        if self.tags:
            found["tags"] = list(self.tags)
        if self.others:
            found["others"] = [asdict(one) for one in self.others]
        if self.cut:
            found["tokens_cut"] = self.cut
        return found
