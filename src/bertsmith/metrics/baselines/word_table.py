"""Texts as a table of which words and pairs of neighbors they hold.

Words are runs of letters and digits in lower case; a Han character is a word of its own, so that
Chinese is read by characters and their pairs; a mark is a word, too. The fields of a row are told
apart. A row of two fields also says which words they share, and how much of the shorter that is.
"""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, repeat

import numpy as np

from bertsmith.errors import ConfigError
from bertsmith.metrics.arrays import Floats, Ints
from bertsmith.metrics.baselines.baseline import Texts

WORD = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]|[^\W_\u3400-\u9fff\uf900-\ufaff]+|[^\w\s]")
MOST_FEATURES = 1_000_000
SHARED = 4  # fields of a row in front of the one with shared words
MOST_FIELDS = SHARED + 2
_BUCKETS = 10


@dataclass(frozen=True, slots=True)
class WordTable:
    """Which feature stands in which row, once each, ordered by row."""

    rows: Ints  # (Z,)
    features: Ints  # (Z,)
    shape: tuple[int, int]  # rows, features

    def sums(self, weights: Floats, values: Floats | None = None) -> Floats:
        """(features,) weights -> (rows,): the sum over each row's features."""
        taken = weights[self.features]
        taken = taken if values is None else taken * values
        return np.bincount(self.rows, taken, minlength=self.shape[0]).astype(np.float64)

    def counts(self, weights: Floats | None = None, values: Floats | None = None) -> Floats:
        """(rows,) weights -> (features,): the sum over the rows that have each feature."""
        taken = None if weights is None else weights[self.rows]
        if values is not None:
            taken = values if taken is None else taken * values
        return np.bincount(self.features, taken, minlength=self.shape[1]).astype(np.float64)

    def only(self, kept: Ints) -> WordTable:
        """The rows with these numbers, in this order numbered anew; the features stay."""
        place = np.full(self.shape[0], -1)
        place[kept] = np.arange(len(kept))
        rows = place[self.rows]
        here = rows >= 0
        return WordTable(rows[here], self.features[here], (len(kept), self.shape[1]))


class Words:
    """The words and pairs of training texts, numbered; others are not seen in new texts."""

    def __init__(self, texts: Texts) -> None:
        self._words: defaultdict[str, int] = defaultdict(count().__next__)
        numbers, lengths = self._read(texts, learn=True)
        self._size = max(1, len(self._words))
        rows, keys = self._keys_of(len(texts), numbers, lengths)
        known, counts = _counted(keys)
        # A pair seen in one row only tells that row again; single words are kept all.
        kept = (counts > 1) | (known < self._first_pair)
        self._keys, counts = known[kept], counts[kept]
        if len(self._keys) > MOST_FEATURES:
            commonest = np.argsort(-counts, kind="stable")[:MOST_FEATURES]
            self._keys = np.sort(self._keys[commonest])
        self.learned = self._looked_up(len(texts), rows, keys)
        """The training texts as a table."""

    def table(self, texts: Texts) -> WordTable:
        """New texts as a table over the known features."""
        return self._looked_up(
            len(texts), *self._keys_of(len(texts), *self._read(texts, learn=False))
        )

    @property
    def _first_pair(self) -> int:
        return MOST_FIELDS * self._size  # single words of all fields come first

    def _read(self, texts: Texts, *, learn: bool) -> tuple[Ints, Ints]:
        """The numbers of all words (-1: unknown), and how many each field of each row has."""
        numbers, lengths = array("q"), array("q")
        unknown = repeat(-1)
        for row in texts:
            fields = _row_fields(row)
            for words in fields:
                if learn:
                    numbers.extend(map(self._words.__getitem__, words))
                else:
                    numbers.extend(map(self._words.get, words, unknown))
            lengths.extend([*map(len, fields), *[0] * (MOST_FIELDS - len(fields))])
        return np.array(numbers, dtype=np.int64), np.array(lengths, dtype=np.int64)

    def _keys_of(self, rows_in: int, numbers: Ints, lengths: Ints) -> tuple[Ints, Ints]:
        """(Z,), (Z,): row and key of every word and pair, each once a row, ordered by row."""
        place = np.repeat(np.arange(rows_in * MOST_FIELDS), lengths)
        rows, fields = np.divmod(place, MOST_FIELDS)
        single = fields * self._size + numbers
        seen = numbers >= 0
        # Shared words stand in a field of their own, where being neighbors means nothing.
        together = (place[:-1] == place[1:]) & seen[:-1] & seen[1:] & (fields[:-1] < SHARED)
        pair = self._first_pair + single[:-1] * self._size + numbers[1:]
        rows = np.concatenate([rows[seen], rows[:-1][together]])
        keys = np.concatenate([single[seen], pair[together]])
        # One number for both sorts many times faster than two keys do.
        limit = self._first_pair * (self._size + 1)
        if rows_in * limit >= np.iinfo(np.int64).max:
            raise ConfigError(
                f"{rows_in} rows with {self._size} words are too many for a bag of words; "
                "fit the baseline on a part of the rows"
            )
        both = np.divmod(_counted(rows * limit + keys)[0], limit)
        return both[0], both[1]

    def _looked_up(self, rows_in: int, rows: Ints, keys: Ints) -> WordTable:
        places = np.searchsorted(self._keys, keys)
        places[places == len(self._keys)] = 0
        known = self._keys[places] == keys if len(self._keys) else np.zeros(len(keys), np.bool_)
        return WordTable(rows[known], places[known], (rows_in, len(self._keys)))


def words_of(text: str) -> list[str]:
    """The words of a text in lower case."""
    return WORD.findall(text.lower())


def _row_fields(fields: Sequence[str]) -> list[list[str]]:
    found = [words_of(text) for text in fields[:SHARED]]
    if len(fields) > SHARED:  # fields beyond are read as one
        found[-1] = [word for text in fields[SHARED - 1 :] for word in words_of(text)]
    if len(found) == 2:
        first, second = set(found[0]), set(found[1])
        shared = [word for word in dict.fromkeys(found[1]) if word in first]
        least = min(len(first), len(second))
        bucket = int(_BUCKETS * len(shared) / least) if least else 0
        found += [*[[]] * (SHARED - 2), shared, [f"shared {bucket}"]]
    return found


def _counted(keys: Ints) -> tuple[Ints, Ints]:
    """The different keys in order, and how often each occurs."""
    ordered = np.sort(keys)
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))[: len(keys)]
    return ordered[first], np.diff(np.append(first, len(ordered)))
