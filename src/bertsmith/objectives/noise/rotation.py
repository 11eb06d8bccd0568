"""Document rotation: the text begins at another word (BART, Lewis et al. 2019)."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from bertsmith.corpus.rows import RowsBatch, begins
from bertsmith.objectives.noise.noised import Noise, Noised, NoiseSettings, arranged
from bertsmith.objectives.noise.units import number_in
from bertsmith.random_keys import unit
from bertsmith.text.tokenizer import Tokenizer


def rotate(rate: float, stream: str) -> Noise:
    """Text between special tokens begins at one of its later words, with the chance `rate`."""

    def noise(rows: RowsBatch) -> Noised:
        words = np.flatnonzero(begins(rows.words, rows))
        first = np.flatnonzero(rows.breaks[words])
        counts = np.diff(np.append(first, len(words)))
        start = words[first]
        texts = rows.texts[start]
        number = number_in(texts)
        turned = unit(rows.numbered_bits(stream, texts, number)) < rate
        draws = unit(rows.numbered_bits(f"{stream} place", texts, number))
        word = np.where(turned & (counts > 1), 1 + (draws * (counts - 1)).astype(np.int64), 0)
        shift = words[first + word] - start if len(first) else start
        stretch = (np.cumsum(rows.breaks) - 1)[rows.real]
        sizes = np.bincount(stretch, minlength=len(first))
        near = np.arange(len(rows.ids))
        place = near[rows.real] - start[stretch]
        near[rows.real] = start[stretch] + (place + shift[stretch]) % sizes[stretch]
        return arranged(rows, near, np.zeros(len(near), dtype=bool))

    return noise


class Rotation(NoiseSettings):
    """A share of the texts, each begun at one of its later words; its beginning comes last."""

    kind: Literal["rotation"] = "rotation"
    rate: Annotated[float, Field(gt=0, le=1)] = 1.0  # of the texts

    @property
    def changes(self) -> str:
        """What `rate` is a share of."""
        return "texts"

    def make(self, tokenizer: Tokenizer, stream: str) -> Noise:
        """The noise itself."""
        return rotate(self.rate, stream)
