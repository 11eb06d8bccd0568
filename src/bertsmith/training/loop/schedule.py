"""How the learning rate moves, by steps or by the clock, by the share that is done."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from bertsmith.config import Fraction, Settings

_UNITS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "min": 60.0, "s": 1.0}
_PIECE = re.compile(r"(\d+(?:\.\d+)?)\s*(d|h|min|m|s)")


def seconds(value: Any) -> Any:
    """A time like "20m", "1h30m" or "90s" in seconds; anything but a string stays as it is."""
    if not isinstance(value, str):
        return value
    text = value.strip().lower()
    pieces = _PIECE.findall(text)
    if not pieces or _PIECE.sub("", text).strip():
        raise ValueError(f"{value!r} is no time; write 20m, 1h30m, 90s or a number of seconds")
    return sum(float(number) * _UNITS[unit] for number, unit in pieces)


Seconds = Annotated[float, BeforeValidator(seconds), Field(gt=0, allow_inf_nan=False)]


class _Length(Settings):
    """How long training lasts: a number of steps or a time, exactly one of them."""

    steps: Annotated[int, Field(gt=0)] | None = None
    budget: Seconds | None = None

    @model_validator(mode="after")
    def _one_length(self) -> Self:
        if (self.steps is None) == (self.budget is None):
            raise ValueError("give either steps or budget (a time), not both and not neither")
        return self


class LinearSettings(_Length):
    """Up in a straight line, then down in a straight line (BERT)."""

    kind: Literal["linear"] = "linear"
    warmup: Annotated[float, Field(ge=0, lt=1)] = 0.01  # share of training

    def factor(self, share: float) -> float:
        """The learning rate as a share of its peak when `share` of training is done."""
        if share < self.warmup:
            return share / self.warmup
        return max(0.0, (1.0 - share) / (1.0 - self.warmup))


class StableSettings(_Length):
    """Warm-up, a long constant stretch, then 1 - sqrt down to nothing (arXiv:2405.18392)."""

    kind: Literal["wsd"] = "wsd"
    warmup: Fraction = 0.02
    decay: Annotated[float, Field(gt=0, le=1)] = 0.2  # the last share of training

    @model_validator(mode="after")
    def _room(self) -> Self:
        if self.warmup + self.decay > 1:
            raise ValueError("warmup and decay together are more than all of training")
        return self

    def factor(self, share: float) -> float:
        """The learning rate as a share of its peak when `share` of training is done."""
        if share < self.warmup:
            return share / self.warmup
        into = 1.0 - (1.0 - share) / self.decay
        return 1.0 if into <= 0 else max(0.0, 1.0 - math.sqrt(into))


ScheduleSettings = Annotated[LinearSettings | StableSettings, Field(discriminator="kind")]


class Pace:
    """Where a run stands in its steps or its time.

    By steps everything follows from the step number. By the clock it follows from the seconds used,
    which are recorded in every checkpoint: a resumed run continues from there, but two runs never
    take the same number of steps, so equal numbers are promised for runs by steps only.
    """

    def __init__(self, settings: LinearSettings | StableSettings) -> None:
        self.settings = settings
        self.reserve = 0.0  # seconds to keep for the last evaluation and the last checkpoint

    def share(self, step: int, clock: float) -> float:
        """How much of training lies behind when `step` steps took `clock` seconds."""
        if self.settings.steps is not None:
            return min(1.0, step / self.settings.steps)
        return min(1.0, clock / self._time())

    def factor(self, step: int, clock: float) -> float:
        """The rate of the next step as a share of the peak, taken in the middle of the step."""
        if self.settings.steps is not None:
            return self.settings.factor(min(1.0, (step + 0.5) / self.settings.steps))
        half = clock / (2 * step) if step else 0.0
        return self.settings.factor(min(1.0, (clock + half) / self._time()))

    def is_over(self, step: int, clock: float) -> bool:
        """Whether no further step belongs to the run: by the clock, one more would not fit."""
        if self.settings.steps is not None:
            return step >= self.settings.steps
        mean = clock / step if step else 0.0
        return step > 0 and clock + mean > self._time()

    def left(self, step: int, clock: float) -> float:
        """About how many seconds are left."""
        if self.settings.steps is None:
            return max(0.0, self._time() + self.reserve - clock)
        return clock / step * (self.settings.steps - step) if step else math.inf

    def _time(self) -> float:
        budget = self.settings.budget or math.inf
        return max(budget - self.reserve, budget / 2)
