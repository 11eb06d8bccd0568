"""Which units of a text are hidden: whole ones, all with the same chance."""

from __future__ import annotations

import numpy as np

from bertsmith.corpus.rows import Flags, Longs, RowsBatch, begins
from bertsmith.errors import ConfigError

_HALF = np.uint64(32)


def choose(groups: Longs, rows: RowsBatch, rate: float) -> Flags:
    """(T,) units -> (T,) hidden: in each text about `rate` of its real tokens, at least one unit.

    The units of a text lie in random order on a circle as long as the text. A window of
    rate x length is put on it at a random place, and the units that begin inside it are hidden.
    So every unit has exactly the chance `rate`, long or short; the expected number of hidden
    tokens is exact; and it never strays from that by more than one unit.
    """
    if not 0.0 < rate <= 1.0:
        raise ConfigError(f"the share of tokens to hide must be above 0 and at most 1, not {rate}")
    opens = begins(groups, rows)
    first = np.flatnonzero(opens)  # (G,) the first row of each unit
    if not len(first):
        return np.zeros(len(groups), dtype=bool)
    unit = np.cumsum(opens) - 1  # (T,)
    sizes = np.bincount(unit[rows.real], minlength=len(first))
    text = rows.texts[first]
    order = _random_order(rows, first, text)
    sizes, text = sizes[order], text[order]
    total = np.bincount(text, weights=sizes, minlength=len(rows.lengths))  # (B,) real tokens
    place = np.cumsum(sizes) - sizes
    place = place - (np.cumsum(total) - total)[text]  # where each unit begins on its circle
    away = place - (rows.text_uniforms("window") * total)[text]
    away = np.where(away < 0, away + total[text], away)
    heads = np.flatnonzero(np.append(True, text[1:] != text[:-1]))
    nearest = np.repeat(np.minimum.reduceat(away, heads), np.diff(np.append(heads, len(text))))
    chosen = np.zeros(len(first) + 1, dtype=bool)
    chosen[order] = (away < rate * total[text]) | (away == nearest)
    hidden: Flags = chosen[unit] & rows.real
    return hidden


def _random_order(rows: RowsBatch, first: Longs, text: Longs) -> Longs:
    """Units by text, at random inside of it: a sort of text, random bits and number in one word.

    The random bits are always 32 and ties go by number, so the order in a text does not depend
    on what else is in the batch.
    """
    start = np.searchsorted(text, np.arange(len(rows.lengths)))  # first unit of each text
    number = np.arange(len(first)) - start[text]
    low = int(number.max()).bit_length()
    if low + len(rows.lengths).bit_length() > 32:
        raise ConfigError(
            f"{len(rows.lengths)} texts of up to {int(number.max()) + 1} units are too many for "
            "one batch; make smaller batches"
        )
    keys = text.astype(np.uint64) << np.uint64(32 + low)
    keys |= (rows.bits("order", first) >> _HALF) << np.uint64(low)
    keys |= number.astype(np.uint64)
    keys.sort()
    texts = (keys >> np.uint64(32 + low)).astype(np.int64)
    return start[texts] + (keys & np.uint64((1 << low) - 1)).astype(np.int64)
