"""Text infilling: spans of words, each replaced by one mask (BART, Lewis et al. 2019)."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from bertsmith.corpus.rows import Flags, Longs, RowsBatch, begins, spread
from bertsmith.objectives.noise.noised import Noise, Noised, NoiseSettings, hide, mask_of
from bertsmith.objectives.noise.units import choose_units, number_in, text_alone, unit_numbers
from bertsmith.random_keys import Floats, unit
from bertsmith.text.tokenizer import Tokenizer

RAREST = 1e-7  # lengths of a smaller chance are never drawn
SPARE = 16  # lengths drawn per stretch beyond its words: some of them are 0


def poisson(mean: float) -> Floats:
    """The summed chances of the lengths 0, 1, 2, ... up to the last that is not too rare."""
    chances = [math.exp(-mean)]
    while chances[-1] >= RAREST or len(chances) <= mean:
        chances.append(chances[-1] * mean / len(chances))
    return np.cumsum(chances) / sum(chances)


def spans(rows: RowsBatch, words: Longs, shares: Floats, stream: str) -> tuple[Longs, Longs]:
    """Spans that tile the words of each stretch without special tokens: first words and sizes.

    `words` (W,) are the first rows of words. A span of size 0 lies before its word. The last span
    of a stretch ends with it.
    """
    first = np.flatnonzero(rows.breaks[words])  # the first word of each stretch
    counts = np.diff(np.append(first, len(words)))
    drawn = counts + SPARE
    stretch = np.repeat(np.arange(len(first)), drawn)
    texts = rows.texts[words[first]][stretch]
    draws = unit(rows.numbered_bits(f"{stream} length", texts, number_in(texts)))
    sizes = np.minimum(np.searchsorted(shares, draws, side="right"), len(shares) - 1)
    last = np.cumsum(drawn) - 1
    sizes[last] = counts  # the last one takes whatever is left
    ends = np.cumsum(sizes)
    begin = ends - sizes
    begin -= np.repeat(begin[last - drawn + 1], drawn)  # counted from the stretch's first word
    used = begin < counts[stretch]
    begin, stretch, sizes = begin[used], stretch[used], sizes[used]
    return first[stretch] + begin, np.minimum(sizes, counts[stretch] - begin)


def infill(rate: float, mean: float, mask_id: int, stream: str) -> Noise:
    """Spans of Poisson(mean) words become one mask each, together `rate` of the words."""
    shares = poisson(mean)

    def noise(rows: RowsBatch) -> Noised:
        text = text_alone(rows, mask_id)
        opens = begins(text.words, text)
        words = np.flatnonzero(opens)
        begin, sizes = spans(text, words, shares, stream)
        texts = rows.texts[words[begin]]
        hit = choose_units(rows, sizes, texts, rate, stream)
        hidden = np.zeros(len(words) + 1, dtype=bool)
        hidden[spread(begin[hit], sizes[hit])] = True
        drop = hidden[unit_numbers(opens, text)]
        hit &= (sizes > 0) | _room(rows, drop, hit, sizes, texts)
        return hide(rows, drop, words[begin[hit]], mask_id)

    return noise


def _room(rows: RowsBatch, drop: Flags, hit: Flags, sizes: Longs, texts: Longs) -> Flags:
    """(G,) chosen spans of size 0 that leave their text no longer than it was."""
    count = len(rows.lengths)
    removed = np.bincount(rows.texts[drop], minlength=count)
    masks = np.bincount(texts[hit & (sizes > 0)], minlength=count)
    at = np.flatnonzero(hit & (sizes == 0))
    fits = np.zeros(len(hit), dtype=bool)
    fits[at] = number_in(texts[at]) < (removed - masks)[texts[at]]
    return fits


class Infilling(NoiseSettings):
    """Spans of Poisson(`mean`) words, each replaced by one mask; a span of 0 words adds a mask.

    Spans tile the text, so that none overlap and `rate` is what is really hidden. A text never
    becomes longer: masks of 0 words that would make it so are left out.
    """

    kind: Literal["infilling"] = "infilling"
    rate: Annotated[float, Field(gt=0, le=1)] = 0.3  # of the words
    mean: Annotated[float, Field(ge=0.5, le=100)] = 3.0  # words per span

    def make(self, tokenizer: Tokenizer, stream: str) -> Noise:
        """The noise itself."""
        return infill(self.rate, self.mean, mask_of(tokenizer, self.kind), stream)
