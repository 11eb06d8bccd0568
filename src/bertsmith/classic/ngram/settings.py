"""Settings of n-gram models."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Self

from pydantic import Field, model_validator

from bertsmith.config import Settings

Threshold = Annotated[int, Field(ge=0)]


class NgramSettings(Settings):
    """Interpolated modified Kneser-Ney, as kenlm's lmplz estimates it.

    `prune`: n-grams seen no more often are left out, by order from 1; the last number holds for
    the orders after it. `fallback`: use the discounts .5, 1 and 1.5 where the text is too small or
    too regular to compute them.
    """

    order: Annotated[int, Field(ge=1, le=12)] = 5
    prune: tuple[Threshold, ...] = ()
    fallback: bool = False

    @model_validator(mode="after")
    def _rising(self) -> Self:
        given = self.prune
        if len(given) > self.order:
            raise ValueError(f"prune has {len(given)} numbers for order {self.order}")
        if given and given[0] != 0:
            raise ValueError("prune must begin with 0: words are left out by the minimum count")
        if any(low > high for low, high in pairwise(given)):
            raise ValueError("prune must not fall: an n-gram needs the shorter ones inside it")
        return self

    def thresholds(self) -> tuple[int, ...]:
        """One number per order."""
        last = self.prune[-1] if self.prune else 0
        return (*self.prune, *[last] * (self.order - len(self.prune)))
