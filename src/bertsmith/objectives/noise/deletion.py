"""Token deletion: chosen words are gone, and nothing says where (BART, Lewis et al. 2019)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from bertsmith.objectives.masking.grouping import Unit
from bertsmith.objectives.noise.noised import Noise, NoiseSettings
from bertsmith.objectives.noise.token_masking import hide_units
from bertsmith.text.tokenizer import Tokenizer


class Deletion(NoiseSettings):
    """A share of the words, or of the tokens, deleted."""

    kind: Literal["deletion"] = "deletion"
    rate: Annotated[float, Field(gt=0, le=1)] = 0.15  # of the units
    unit: Unit = "word"

    @property
    def changes(self) -> str:
        """What `rate` is a share of."""
        return f"{self.unit}s"

    def make(self, tokenizer: Tokenizer, stream: str) -> Noise:
        """The noise itself."""
        return hide_units(self.rate, self.unit, tokenizer.special.mask, stream, shown=False)
