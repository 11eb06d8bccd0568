"""Units that a noise may hide, and which of them it hides: an exact share, nothing twice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bertsmith.corpus.rows import Flags, Longs, RowsBatch, begins
from bertsmith.objectives.masking.grouping import Unit


def text_alone(rows: RowsBatch, mask_id: int | None) -> RowsBatch:
    """The rows with masks of earlier noises as special tokens: they are not hidden again."""
    return replace(rows, words=np.where(rows.ids == mask_id, -1, rows.words).astype(np.int32))


def unit_starts(rows: RowsBatch, unit: Unit) -> Flags:
    """(T,) where a word, or every token for itself, begins."""
    return begins(rows.words, rows) if unit == "word" else rows.real


def unit_numbers(opens: Flags, rows: RowsBatch) -> Longs:
    """(T,) the unit of each row of text, the number after the last one elsewhere."""
    return np.where(rows.real, np.cumsum(opens) - 1, int(opens.sum()))


def number_in(texts: Longs) -> Longs:
    """(G,) texts in order -> (G,) the number of each thing in its own text."""
    first = np.searchsorted(texts, texts, side="left")
    return np.arange(len(texts)) - first


def choose_units(rows: RowsBatch, sizes: Longs, texts: Longs, rate: float, stream: str) -> Flags:
    """(G,) which units are hidden: about `rate` of the summed `sizes` of each of the `texts`.

    The units of a text lie in random order on a circle as long as the text, and those are chosen
    that begin in a window of rate x length at a random place. So each unit, long, short or of size
    0, has exactly the chance `rate`, and a text never strays by more than one unit.
    """
    number = number_in(texts)
    bits = rows.numbered_bits(f"{stream} order", texts, number)
    order = np.lexsort((number, bits, texts))
    sizes, texts = sizes[order], texts[order]
    total = np.bincount(texts, weights=sizes, minlength=len(rows.lengths))
    place = np.cumsum(sizes) - sizes - (np.cumsum(total) - total)[texts]
    away = place - (rows.text_uniforms(f"{stream} window") * total)[texts]
    away = np.where(away < 0, away + total[texts], away)
    chosen = np.zeros(len(order), dtype=bool)
    chosen[order] = away < rate * total[texts]
    return chosen
