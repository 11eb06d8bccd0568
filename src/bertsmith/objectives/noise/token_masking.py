"""Token masking: a mask takes the place of each chosen word (BART, Lewis et al. 2019)."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from bertsmith.corpus.rows import RowsBatch
from bertsmith.objectives.masking.grouping import Unit
from bertsmith.objectives.noise.noised import Noise, Noised, NoiseSettings, hide, mask_of
from bertsmith.objectives.noise.units import (
    choose_units,
    text_alone,
    unit_numbers,
    unit_starts,
)
from bertsmith.text.tokenizer import Tokenizer


def hide_units(rate: float, unit: Unit, mask_id: int | None, stream: str, *, shown: bool) -> Noise:
    """Words or tokens are taken out, each with one mask in its place where `shown`."""

    def noise(rows: RowsBatch) -> Noised:
        text = text_alone(rows, mask_id)
        opens = unit_starts(text, unit)
        first = np.flatnonzero(opens)
        hit = choose_units(rows, np.ones_like(first), rows.texts[first], rate, stream)
        drop = np.append(hit, False)[unit_numbers(opens, text)]
        return hide(rows, drop, first[hit & shown], -1 if mask_id is None else mask_id)

    return noise


class TokenMasking(NoiseSettings):
    """A share of the words, or of the tokens, each replaced by one mask."""

    kind: Literal["masking"] = "masking"
    rate: Annotated[float, Field(gt=0, le=1)] = 0.15  # of the units
    unit: Unit = "word"

    @property
    def changes(self) -> str:
        """What `rate` is a share of."""
        return f"{self.unit}s"

    def make(self, tokenizer: Tokenizer, stream: str) -> Noise:
        """The noise itself."""
        return hide_units(self.rate, self.unit, mask_of(tokenizer, self.kind), stream, shown=True)
