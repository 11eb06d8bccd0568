"""Sentence permutation: sentences in another order (BART, Lewis et al. 2019)."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from bertsmith.corpus.rows import RowsBatch, begins, spread
from bertsmith.errors import ConfigError
from bertsmith.objectives.noise.noised import Noise, Noised, NoiseSettings, arranged
from bertsmith.objectives.noise.units import number_in
from bertsmith.text.tokenizer import Tokenizer


def permute(rate: float, stream: str) -> Noise:
    """A share of the sentences, rounded up, change places among themselves."""

    def noise(rows: RowsBatch) -> Noised:
        if rows.sentences is None:
            raise ConfigError("these rows do not say where sentences begin, so none can move")
        start = np.flatnonzero(begins(rows.sentences, rows))
        stretch = np.cumsum(rows.breaks)[start] - 1
        sizes = np.diff(np.append(np.cumsum(rows.real)[start] - 1, int(rows.real.sum())))
        texts = rows.texts[start]
        bits = rows.numbered_bits(stream, texts, number_in(texts))
        rank = np.empty(len(start), dtype=np.int64)
        rank[np.lexsort((bits, stretch))] = number_in(stretch)
        count = np.bincount(stretch)[stretch] if len(stretch) else stretch
        slots = np.flatnonzero(rank < np.ceil(rate * count - 1e-9))
        again = rows.numbered_bits(f"{stream} place", texts, number_in(texts))[slots]
        order = np.arange(len(start))
        order[slots] = slots[np.lexsort((again, stretch[slots]))]
        near = np.arange(len(rows.ids))
        near[rows.real] = spread(start[order], sizes[order])
        return arranged(rows, near, np.zeros(len(near), dtype=bool))

    return noise


class Permutation(NoiseSettings):
    """A share of the sentences in another order, between the special tokens they stand between.

    Sentences are those that the corpus was built with; a part of one at the edge of an example
    counts as a sentence.
    """

    kind: Literal["permutation"] = "permutation"
    rate: Annotated[float, Field(gt=0, le=1)] = 1.0  # of the sentences

    @property
    def changes(self) -> str:
        """What `rate` is a share of."""
        return "sentences"

    def make(self, tokenizer: Tokenizer, stream: str) -> Noise:
        """The noise itself."""
        return permute(self.rate, stream)
