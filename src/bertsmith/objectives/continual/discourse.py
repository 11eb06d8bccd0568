"""Pairs of texts that a discourse marker joined, and the relation it signals.

The marker is taken out of the text, and what it says is predicted, as Sileo et al. 2019
(arXiv:1903.11850) do, whose data ERNIE 2.0 uses for English.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bertsmith.corpus.plans import Pairs, Plan
from bertsmith.corpus.rows import Flags, Longs, spread
from bertsmith.corpus.view import LONGEST_WORD, CorpusView
from bertsmith.errors import InputFileError
from bertsmith.files.lines import text_lines
from bertsmith.objectives.masking.lexicon import forms
from bertsmith.text.segment import is_chinese
from bertsmith.text.tokenizer import Tokenizer

SHIPPED = ("en", "zh")
COMMAS = (",", "，", ";", "；")
SHORTEST = 2  # tokens of either text
STEP = 1 << 22


@dataclass(frozen=True, slots=True)
class MarkerList:
    """Markers, each with the number of its relation among `relations`."""

    relations: tuple[str, ...]
    markers: tuple[tuple[str, int], ...]


def read_markers(named: str) -> MarkerList:
    """A shipped list ("en", "zh") or a file of lines `marker TAB relation`."""
    shipped = named in SHIPPED
    path = Path(__file__).with_name(f"markers_{named}.tsv") if shipped else Path(named)
    found: dict[str, str] = {}
    for number, line in enumerate(text_lines(path), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        marker, _, relation = (part.strip() for part in line.partition("\t"))
        if not (marker and relation) or "\t" in relation:
            raise InputFileError(
                f"{path}, line {number}: expected `marker TAB relation`, not {line[:60]!r}"
            )
        if found.setdefault(marker, relation) != relation:
            raise InputFileError(
                f"{path}, line {number}: {marker!r} signals {relation!r} here and "
                f"{found[marker]!r} above; leave one"
            )
    relations = tuple(dict.fromkeys(found.values()))
    if len(relations) < 2:
        raise InputFileError(f"{path}: a list of markers needs at least two relations")
    markers = tuple((marker, relations.index(relation)) for marker, relation in found.items())
    return MarkerList(relations, markers)


class MarkerFinder:
    """Finds markers at the start of a sentence or after a comma."""

    def __init__(self, markers: MarkerList, tokenizer: Tokenizer) -> None:
        self._commas = np.array(sorted(_single_tokens(COMMAS, tokenizer)), dtype=np.int64)
        spelled: dict[tuple[int, ...], tuple[int, bool]] = {}
        for marker, relation in markers.markers:
            whole = not is_chinese(marker[-1])
            for ids in _spellings(marker, tokenizer):
                spelled.setdefault(ids, (relation, whole))
        longest = sorted(spelled.items(), key=lambda item: -len(item[0]))
        self._spelled = [(np.array(ids), *rest) for ids, rest in longest]
        self._firsts = np.array(sorted({ids[0] for ids in spelled}), dtype=np.int64)

    def plan(self, view: CorpusView, room: int) -> Plan:
        """Pairs of the text before a marker and the text after it, at most `room` tokens.

        At the start of a sentence the text before is the sentence before; after a comma both are
        of one sentence. A longer text loses what is farthest from the marker.
        """
        at, sentence = self._candidates(view)
        size, relation = self._matches(view, at, view.sentences[sentence + 1])
        at, sentence = at[size > 0], sentence[size > 0]
        size, relation = size[size > 0], relation[size > 0]
        start, stop = view.sentences[sentence], view.sentences[sentence + 1]
        opens = at == start
        a = (
            np.where(opens, view.sentences[np.maximum(sentence - 1, 0)], start),
            np.where(opens, at, at - 1),  # without the comma
        )
        after = at + size
        inside = np.minimum(after, len(view.files.tokens) - 1)
        comma = (after < stop) & np.isin(view.files.tokens[inside], self._commas)
        b = (after + comma, stop)
        full = (a[1] - a[0] >= SHORTEST) & (b[1] - b[0] >= SHORTEST)
        a, b = (a[0][full], a[1][full]), (b[0][full], b[1][full])
        half = room // 2
        a = (_next_word(view, np.maximum(a[0], a[1] - half), a[1]), a[1])
        end = np.minimum(b[1], b[0] + (room - half))
        b = (b[0], np.where(end < b[1], view.word_start(end, b[0]), end))
        pairs = Pairs(a=a, b=b, labels=relation[full], owner=np.arange(int(full.sum())))
        return pairs.plan(labeled=True)

    def _candidates(self, view: CorpusView) -> tuple[Longs, Longs]:
        """Tokens at which a marker may begin, in order, and the sentence of each."""
        first, last = view.sentence_ranges
        heads = spread(first + 1, last - first - 1)
        places = [view.sentences[heads]]
        for start, stop in zip(view.starts.tolist(), view.stops.tolist(), strict=True):
            for low in range(start, stop, STEP):
                piece = view.files.tokens[low : min(stop, low + STEP)]
                places.append(np.flatnonzero(np.isin(piece, self._commas)) + low + 1)
        at = np.sort(np.concatenate(places))
        at = at[at < len(view.files.tokens)]
        at = np.unique(at[np.isin(view.files.tokens[at], self._firsts)])
        sentence = np.searchsorted(view.sentences, at, side="right") - 1
        # After the comma at the end of a sentence a new one begins, maybe of another document.
        head = view.sentences[sentence] == at
        keep = ~head | np.isin(sentence, heads)
        return at[keep], sentence[keep]

    def _matches(self, view: CorpusView, at: Longs, stop: Longs) -> tuple[Longs, Longs]:
        """The tokens of the marker at each place, 0 where there is none, and its relation."""
        size, relation = np.zeros_like(at), np.zeros_like(at)
        tokens, starts = view.files.tokens, view.files.starts_word
        for ids, number, whole in self._spelled:
            free = np.flatnonzero((size == 0) & (at + len(ids) <= stop))
            for place, token in enumerate(ids):
                free = free[tokens[at[free] + place] == token]
            if whole:
                ends = at[free] + len(ids)
                open_end = starts[np.minimum(ends, len(starts) - 1)] != 0
                free = free[open_end | (ends == stop[free])]
            size[free], relation[free] = len(ids), number
        return size, relation


def _spellings(marker: str, tokenizer: Tokenizer) -> list[tuple[int, ...]]:
    """The ids of a marker, small and capitalized, at the start of a text and inside of one."""
    words = list(dict.fromkeys((marker, marker[:1].upper() + marker[1:])))
    unknown = tokenizer.special.unk
    found = [tuple(ids) for form in forms(words, tokenizer) for ids in form]
    return [ids for ids in dict.fromkeys(found) if ids and unknown not in ids]


def _single_tokens(texts: Sequence[str], tokenizer: Tokenizer) -> set[int]:
    found = {tuple(ids) for form in forms(texts, tokenizer) for ids in form}
    return {ids[0] for ids in found if len(ids) == 1 and ids[0] != tokenizer.special.unk}


def _next_word(view: CorpusView, places: Longs, stops: Longs) -> Longs:
    """The first start of a word at or after each place, before `stops`; else the place itself."""
    starts: Callable[[Longs], Flags] = lambda at: view.files.starts_word[at] != 0  # noqa: E731
    found = places.copy()
    open_ = np.flatnonzero(~starts(found))
    for _ in range(LONGEST_WORD):
        if not len(open_):
            return found
        found[open_] += 1
        lost = open_[found[open_] >= stops[open_]]
        found[lost] = places[lost]
        open_ = open_[(found[open_] < stops[open_]) & (found[open_] > places[open_])]
        open_ = open_[~starts(found[open_])]
    found[open_] = places[open_]
    return found
