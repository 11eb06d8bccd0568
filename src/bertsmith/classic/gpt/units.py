"""Which tokens of a model stand for the words of a stream, and for the ends of a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertsmith.errors import ConfigError
from bertsmith.text.tokenizer import Tokenizer

Ids = NDArray[np.int32]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TokenUnits:
    """The token of each word (V,), those around a line, and how many tokens there are.

    Pieces keep the ids of their tokenizer, so that the model folder is one of that tokenizer; words
    are numbered after the two tokens around a line.
    """

    tokens: Ids
    begin: int
    end: int
    size: int

    @classmethod
    def of(cls, words: Sequence[str], tokenizer: Tokenizer | None) -> TokenUnits:
        """For the words of a stream, number 0 unknown; `tokenizer` if they are its pieces."""
        if tokenizer is None:
            tokens = np.arange(2, len(words) + 2, dtype=np.int32)
            return cls(tokens=tokens, begin=0, end=1, size=len(words) + 2)
        end = tokenizer.end_id
        if end is None:
            raise ConfigError(
                "the tokenizer has no token that ends a text (sep or eos), which a causal language "
                "model predicts; take another tokenizer"
            )
        begin = end if tokenizer.special.cls is None else tokenizer.special.cls
        special = tokenizer.special
        rest = next(one for one in (special.unk, special.pad, end) if one is not None)
        found = [rest, *(tokenizer.token_to_id(word) for word in words[1:])]
        if None in found:
            raise ConfigError(
                f"{words[found.index(None)]!r} is no piece of the tokenizer; the words were made "
                "with another one"
            )
        tokens = np.array(found, dtype=np.int32)
        return cls(tokens=tokens, begin=begin, end=end, size=tokenizer.vocab_size)

    @property
    def classes(self) -> Ids:
        """The tokens that can come next: those of all words, then that of the end (V + 1,)."""
        return np.append(self.tokens, np.int32(self.end))

    def line(self, ids: NDArray[np.integer]) -> Ids:
        """A line of words as tokens, from its begin to its end: (n,) -> (n + 2,)."""
        return np.concatenate([[self.begin], self.tokens[ids], [self.end]]).astype(np.int32)
