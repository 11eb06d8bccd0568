"""How many texts or tokens a step takes, whatever the number of ranks, and how it is cut up."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from bertsmith.config import Settings

Count = Annotated[int, Field(gt=0)]


class BatchSettings(Settings):
    """The global batch, in texts or in tokens, and the tokens of one pass through the model."""

    sequences: Count | None = None
    tokens: Count | None = None
    micro_tokens: Count = 8_192

    @model_validator(mode="after")
    def _one_size(self) -> Self:
        if (self.sequences is None) == (self.tokens is None):
            raise ValueError("give the batch either in sequences or in tokens")
        return self

    def texts(self, length: int) -> int:
        """Texts of at most `length` tokens in a step, over all ranks."""
        return self.sequences or max(1, (self.tokens or 0) // length)
