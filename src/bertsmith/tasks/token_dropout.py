"""Token dropout: masks random tokens of a training text, others in each epoch.

No prediction can then depend on a single token. Unlike dropout of attention it costs no time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bertsmith.errors import ConfigError
from bertsmith.tasks.feature import Feature
from bertsmith.text.tokenizer import Tokenizer

_STREAM = 1  # apart from other draws with the same seed and number


@dataclass(frozen=True, slots=True)
class TokenDropout:
    """Hide `share` of the tokens of a text behind the token `mask`; special ones stay."""

    share: float
    mask: int
    seed: int

    @classmethod
    def of(cls, share: float, tokenizer: Tokenizer, seed: int) -> TokenDropout | None:
        """With the mask of a vocabulary; None if nothing is to be hidden."""
        if not share:
            return None
        if tokenizer.special.mask is None:
            raise ConfigError(
                f"regularization.token_dropout={share:g} needs a mask token, and the vocabulary "
                "has none; leave it out"
            )
        return cls(share, tokenizer.special.mask, seed)

    def hide(self, passages: Sequence[Feature], reading: int) -> list[Feature]:
        """The passages of an example; `reading` counts what training reads, from run to run alike.

        Where a token stands in several passages, it may be hidden in one and not in another.
        """
        key = np.array([self.seed, reading], dtype=np.uint64)
        random = np.random.Generator(np.random.Philox(key=key, counter=_STREAM << 64))
        found = []
        for passage in passages:
            encoding = passage.encoding
            hidden = (random.random(len(encoding)) < self.share) & (encoding.fields >= 0)
            ids = np.where(hidden, np.int32(self.mask), encoding.ids)
            found.append(replace(passage, encoding=replace(encoding, ids=ids)))
        return found
