"""The n-grams of a text, order by order: each is its left word and the number of its suffix.

The distinct n-grams of an order are sorted by (left word, number of the (n-1)-gram that follows),
which is one int64 key; their places in that order are their numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertsmith.classic.stream.stream import WordStream

Ints = NDArray[np.int64]
Numbers = NDArray[np.int32]


@dataclass(slots=True, eq=False)
class OrderCounts:
    """The distinct n-grams of one order.

    `keys` (U,) sorted; `raw` (U,) occurrences; `suffix` (U,) the number of the (n-1)-gram without
    the left word, `context` (U,) of the one without the last word; `begins` (U,) True for those
    that begin with the start of a line. A key is the left word x `below` + the suffix.
    """

    below: int
    keys: Ints
    raw: Ints
    suffix: Numbers
    context: Numbers
    begins: NDArray[np.bool_]


def line_tokens(stream: WordStream) -> tuple[Numbers, Numbers]:
    """Every line as start, words, end (T,), and the place of each token in its line (T,).

    The end of a line has the number after the last word, the start the one after that.
    """
    lengths = np.diff(stream.starts)
    return framed(np.asarray(stream.ids), lengths, stream.vocab_size)


def framed(ids: NDArray[np.integer], lengths: Ints, words: int) -> tuple[Numbers, Numbers]:
    """The same for ids (N,) of lines of these lengths (L,)."""
    total = int(lengths.sum()) + 2 * len(lengths)
    starts = np.cumsum(lengths + 2) - (lengths + 2)
    tokens = np.empty(total, dtype=np.int32)
    inner = np.ones(total, dtype=bool)
    inner[starts] = False
    inner[starts + lengths + 1] = False
    tokens[inner] = ids
    tokens[starts] = words + 1
    tokens[starts + lengths + 1] = words
    places = np.arange(total, dtype=np.int32) - np.repeat(starts, lengths + 2).astype(np.int32)
    return tokens, places


def count_orders(stream: WordStream, order: int) -> Iterator[OrderCounts]:
    """The n-grams of order 1, 2, ... that reach back to the start of a line, not before it."""
    tokens, places = line_tokens(stream)
    words = stream.vocab_size
    size = words + 2
    begins = np.zeros(size, dtype=bool)
    begins[words + 1] = True
    every = np.arange(size, dtype=np.int32)
    raw = np.bincount(tokens, minlength=size).astype(np.int64)
    zeros = np.zeros(size, dtype=np.int32)
    yield OrderCounts(1, every.astype(np.int64), raw, zeros, zeros, begins)
    numbers = tokens  # (T,) of the n-gram that ends at each token, where there is one
    for length in range(2, order + 1):
        here = np.flatnonzero(places >= length - 1)
        keys = tokens[here - (length - 1)].astype(np.int64)
        keys *= size
        keys += numbers[here]
        sequence = np.argsort(keys)
        keys = keys[sequence]
        new = np.empty(len(keys), dtype=bool)
        new[:1] = True
        np.not_equal(keys[1:], keys[:-1], out=new[1:])
        firsts = np.flatnonzero(new)
        distinct = keys[firsts]
        del keys
        ranks = np.cumsum(new, dtype=np.int32)
        ranks -= 1
        del new
        raw = np.diff(np.append(firsts, len(here)))
        context = numbers[here[sequence[firsts]] - 1]
        above = np.full(len(tokens), -1, dtype=np.int32)
        above[here[sequence]] = ranks
        del sequence, ranks, here
        left, suffix = np.divmod(distinct, size)
        yield OrderCounts(size, distinct, raw, suffix.astype(np.int32), context, left == words + 1)
        numbers, size = above, len(distinct)
