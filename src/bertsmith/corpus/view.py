"""What example construction needs to know of a corpus: chosen documents, sentences, word starts."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bertsmith.corpus.rows import Longs, spread
from bertsmith.corpus.shards import Corpus
from bertsmith.errors import ConfigError

LONGEST_WORD = 32  # tokens to look back for the start of a word before cutting through it


class CorpusView:
    """Some documents of a corpus, as ranges of tokens."""

    def __init__(self, files: Corpus, documents: NDArray[np.integer]) -> None:
        self.files = files
        self.sentences: Longs = np.asarray(files.sentences, dtype=np.int64)
        chosen = np.asarray(documents, dtype=np.int64)
        offsets = np.asarray(files.documents, dtype=np.int64)
        if len(chosen) and not 0 <= chosen.min() <= chosen.max() < len(offsets) - 1:
            raise ConfigError(
                f"document numbers must be 0 to {len(offsets) - 2}, "
                f"not {chosen.min()} to {chosen.max()}"
            )
        starts, stops = self.sentences[offsets[chosen]], self.sentences[offsets[chosen + 1]]
        full = stops > starts
        self.starts: Longs = starts[full]
        self.stops: Longs = stops[full]
        self.sentence_ranges = (offsets[chosen][full], offsets[chosen + 1][full])
        if not len(self.starts):
            raise ConfigError("the chosen documents of this corpus hold no text")

    @property
    def count(self) -> int:
        """The number of documents with text."""
        return len(self.starts)

    @cached_property
    def ends(self) -> Longs:
        """Tokens up to and with each document, counted over the chosen ones."""
        return np.cumsum(self.stops - self.starts)

    @property
    def tokens(self) -> int:
        """Tokens of all chosen documents."""
        return int(self.ends[-1])

    def word_start(self, places: Longs, floor: Longs) -> Longs:
        """The nearest start of a word at or before each place, if there is one after `floor`."""
        word_starts = places.copy()
        inside = np.flatnonzero((places > floor) & (places < len(self.files.tokens)))
        for _ in range(LONGEST_WORD):
            inside = inside[self.files.starts_word[word_starts[inside]] == 0]
            if not len(inside):
                return word_starts
            word_starts[inside] -= 1
            lost = inside[word_starts[inside] <= floor[inside]]
            word_starts[lost] = places[lost]
            inside = inside[word_starts[inside] < places[inside]]
        word_starts[inside] = places[inside]
        return word_starts

    def other_token(self, documents: Longs, draws: NDArray[np.float64]) -> tuple[Longs, Longs]:
        """A token of another document for each of `documents`: its document and its place."""
        own = self.stops[documents] - self.starts[documents]
        before = self.ends[documents] - own
        number = (draws * (self.tokens - own)).astype(np.int64)
        number = np.where(number >= before, number + own, number)
        other = np.searchsorted(self.ends, number, side="right")
        return other, self.stops[other] - (self.ends[other] - number)

    def stretches(self, longest: int) -> tuple[Longs, Longs, Longs]:
        """Documents cut at sentence ends where they outgrow `longest`: starts, stops, documents.

        Then no single giant document decides how many steps a plan takes.
        """
        sizes = self.stops - self.starts
        cuts = (sizes - 1) // longest
        documents = np.repeat(np.arange(self.count), cuts)
        wanted = self.starts[documents] + (spread(np.ones_like(cuts), cuts)) * longest
        places = self.sentences[np.searchsorted(self.sentences, wanted, side="left")]
        inside = places < self.stops[documents]
        starts = np.concatenate([self.starts, places[inside]])
        owners = np.concatenate([np.arange(self.count), documents[inside]])
        order = np.lexsort((starts, owners))
        starts, owners = starts[order], owners[order]
        fresh = np.ones(len(starts), dtype=bool)
        fresh[1:] = (starts[1:] != starts[:-1]) | (owners[1:] != owners[:-1])
        starts, owners = starts[fresh], owners[fresh]
        stops = np.append(starts[1:], 0)
        last = np.append(owners[1:] != owners[:-1], True)
        return starts, np.where(last, self.stops[owners], stops), owners

    def pieces(self, longest: int) -> tuple[Longs, Longs, Longs]:
        """Sentences, longer ones cut at words into several: starts, stops, documents."""
        first, last = self.sentence_ranges
        numbers = spread(first, last - first)
        owners = np.repeat(np.arange(self.count), last - first)
        starts, stops = self.sentences[numbers], self.sentences[numbers + 1]
        parts = []
        while len(starts):
            ends = np.minimum(stops, starts + longest)
            cut = ends < stops
            ends[cut] = self.word_start(ends[cut], starts[cut])
            parts.append((starts, ends, owners))
            starts, stops, owners = ends[cut], stops[cut], owners[cut]
        starts, stops, owners = (np.concatenate(column) for column in zip(*parts, strict=True))
        full = stops > starts
        order = np.lexsort((starts[full], owners[full]))
        return starts[full][order], stops[full][order], owners[full][order]
