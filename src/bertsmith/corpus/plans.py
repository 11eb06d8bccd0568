"""Plans: which stretches of the corpus make which example of an epoch.

Pairs of segments or sentences, as the data script of BERT makes them (Devlin et al. 2018,
arXiv:1810.04805): each text is used about once per epoch, and the part of a chunk that a random B
left unused begins the next example. Full sentences one after another, across documents or inside
them (Liu et al. 2019, arXiv:1907.11692).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from bertsmith.corpus.rows import Flags, Longs, spread
from bertsmith.corpus.view import CorpusView
from bertsmith.errors import ConfigError
from bertsmith.random_keys import Floats, key_of, shuffled, uniforms


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """Examples as parts, each a range of the corpus's tokens.

    Example e has the parts `first[e]` to `first[e + 1] - 1`; part q is `starts[q]` to
    `stops[q] - 1`. `labels` (E,) say what became of a pair: 0 right, 1 random or swapped.
    """

    first: Longs
    starts: Longs
    stops: Longs
    labels: Longs | None = None

    @property
    def count(self) -> int:
        """E, the number of examples."""
        return len(self.first) - 1

    def parts(self, numbers: Longs) -> tuple[Longs, Longs]:
        """The parts of some examples, one after another, and how many each has."""
        counts = self.first[numbers + 1] - self.first[numbers]
        return spread(self.first[numbers], counts), counts

    def tokens(self, numbers: Longs) -> Longs:
        """The tokens of some examples, special ones not counted."""
        parts, counts = self.parts(numbers)
        sums = np.concatenate([[0], np.cumsum(self.stops[parts] - self.starts[parts])])
        ends = np.cumsum(counts)
        lengths: Longs = sums[ends] - sums[ends - counts]
        return lengths


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pairs:
    """Pairs in the order they were made: A and B as token ranges, and the `owner` of each."""

    a: tuple[Longs, Longs]
    b: tuple[Longs, Longs]
    labels: Longs
    owner: Longs

    def plan(self, *, swap: Flags | None = None, labeled: bool) -> Plan:
        """A plan in the order of the owners; where `swap`, B stands before A with label 1."""
        order = np.argsort(self.owner, kind="stable")
        starts = np.stack([self.a[0], self.b[0]], axis=1)
        stops = np.stack([self.a[1], self.b[1]], axis=1)
        labels = self.labels
        if swap is not None:
            starts[swap], stops[swap] = starts[swap, ::-1], stops[swap, ::-1]
            labels = swap.astype(np.int64)
        return Plan(
            first=np.arange(0, 2 * len(order) + 1, 2),
            starts=starts[order].ravel(),
            stops=stops[order].ravel(),
            labels=labels[order] if labeled else None,
        )


def gathered(parts: list[Pairs]) -> Pairs:
    """Several collections of pairs as one."""

    def join(arrays: list[Longs]) -> Longs:
        return np.concatenate([np.empty(0, dtype=np.int64), *arrays])

    return Pairs(
        a=(join([p.a[0] for p in parts]), join([p.a[1] for p in parts])),
        b=(join([p.b[0] for p in parts]), join([p.b[1] for p in parts])),
        labels=join([p.labels for p in parts]),
        owner=join([p.owner for p in parts]),
    )


class StepDraws:
    """Random numbers of one step, one for each owner that is still at work."""

    def __init__(self, key: int, owners: Longs, step: int) -> None:
        self._key = key
        self._owners = owners
        self._step = step

    def __call__(self, stream: str) -> Floats:
        """A number in [0, 1) for each owner."""
        return uniforms(key_of(self._key, stream, self._step), self._owners)


def targets(draws: StepDraws, room: int, short: float) -> Longs:
    """How long each example should be: `room`, or anything from 2 on for a share of `short`."""
    drawn = 2 + (draws("length") * (room - 1)).astype(np.int64)
    return np.where(draws("short") < short, drawn, room)


PairTask = Literal["next_sentence", "sentence_order"]

STRETCH = 64  # examples' worth of tokens after which a document is continued as if it were new
SMALLEST = 8  # a shorter end of a document takes some tokens before it along


def segment_pairs(
    view: CorpusView, room: int, short: float, task: PairTask | None, key: int
) -> Plan:
    """A and B of several sentences, together about `room` tokens."""
    _check(view, task)
    begin, stop, document = view.stretches(STRETCH * room)
    owner = np.flatnonzero(stop - begin >= 2)
    begin, stop, document = begin[owner], stop[owner], document[owner]
    at = begin.copy()
    parts = []
    step = 0
    while len(owner):
        draws = StepDraws(key, owner, step)
        step += 1
        tail = stop - at < SMALLEST
        at = np.where(tail, np.maximum(begin, np.minimum(at, stop - SMALLEST)), at)
        wanted = np.where(tail, room, targets(draws, room, short))
        end = at + np.minimum(wanted, stop - at)
        end = np.where(end < stop, view.word_start(end, at + 1), end)
        middle, at_sentence = _split(view, at, end, draws("split"))
        apart = draws("apart") < 0.5 if task == "next_sentence" else np.zeros(len(at), bool)
        b = (middle.copy(), end.copy())
        if apart.any():
            one = np.flatnonzero(apart)
            other = _elsewhere(
                view, document[one], (end - middle)[one], at_sentence[one], draws("other")[one]
            )
            b[0][one], b[1][one] = other
        parts.append(Pairs(a=(at, middle), b=b, labels=apart.astype(np.int64), owner=owner))
        at = np.where(apart, middle, end)
        alive = (at < stop) & ~tail
        owner, document = owner[alive], document[alive]
        at, begin, stop = at[alive], begin[alive], stop[alive]
    return _finished(gathered(parts), task, key)


def sentence_pairs(view: CorpusView, room: int, task: PairTask | None, key: int) -> Plan:
    """A and B of one sentence each; a sentence longer than half of `room` counts as several."""
    _check(view, task)
    starts, stops, documents = view.pieces(max(room // 2, 1))
    first = np.searchsorted(documents, np.arange(view.count))
    last = np.searchsorted(documents, np.arange(view.count), side="right")
    begin, stop, document = _cut(first, last, STRETCH)
    owner = np.flatnonzero(stop - begin >= 2)
    begin, stop, document = begin[owner], stop[owner], document[owner]
    at = begin.copy()
    parts = []
    step = 0
    while len(owner):
        draws = StepDraws(key, owner, step)
        step += 1
        tail = stop - at == 1
        at = at - tail  # the sentence before goes along
        apart = draws("apart") < 0.5 if task == "next_sentence" else np.zeros(len(at), bool)
        own = last[document] - first[document]
        other = (draws("other") * (len(starts) - own)).astype(np.int64)
        other += np.where(other >= first[document], own, 0)
        a, b = np.where(apart & tail, at + 1, at), np.where(apart, other, at + 1)
        parts.append(
            Pairs(
                a=(starts[a], stops[a]),
                b=(starts[b], stops[b]),
                labels=apart.astype(np.int64),
                owner=owner,
            )
        )
        # Begun one later in half of the documents, so that epochs pair other sentences.
        late = (draws("late") < 0.5) & (step == 1) & (stop - begin > 2)
        at = at + np.where((apart | late) & ~tail, 1, 2)
        alive = at < stop
        owner, document = owner[alive], document[alive]
        at, begin, stop = at[alive], begin[alive], stop[alive]
    return _finished(gathered(parts), task, key)


def _check(view: CorpusView, task: PairTask | None) -> None:
    if task == "next_sentence" and view.count < 2:
        raise ConfigError(
            "next_sentence needs a second document to take other sentences from; this corpus "
            "has one: put blank lines between documents, or ask for sentence_order"
        )


def _split(view: CorpusView, at: Longs, end: Longs, draws: Floats) -> tuple[Longs, Flags]:
    """Where A ends: at a random sentence inside, else at a random word; and which it is."""
    low = np.searchsorted(view.sentences, at, side="right")
    high = np.searchsorted(view.sentences, end, side="left")
    at_sentence = high > low
    sentence = low + (draws * (high - low)).astype(np.int64)
    place = view.sentences[np.minimum(sentence, len(view.sentences) - 1)]
    rough = at + 1 + (draws * (end - at - 1)).astype(np.int64)
    return np.where(at_sentence, place, view.word_start(rough, at)), at_sentence


def _elsewhere(
    view: CorpusView, documents: Longs, sizes: Longs, at_sentence: Flags, draws: Floats
) -> tuple[Longs, Longs]:
    """A stretch of another document, as long as the true B and begun the same way."""
    other, place = view.other_token(documents, draws)
    # Near the end of a document there would be less text than needed: begin earlier.
    place = np.minimum(place, np.maximum(view.starts[other], view.stops[other] - sizes))
    sentence = np.searchsorted(view.sentences, place, side="right") - 1
    word = view.word_start(place, view.starts[other])
    start = np.where(at_sentence, view.sentences[sentence], word)
    end = np.minimum(start + sizes, view.stops[other])
    cut = end < view.stops[other]
    return start, np.where(cut, view.word_start(end, start + 1), end)


def _cut(first: Longs, last: Longs, longest: int) -> tuple[Longs, Longs, Longs]:
    """Ranges in stretches of `longest` or more: starts, stops, numbers of the ranges."""
    counts = np.maximum((last - first) // longest, 1)
    number = np.repeat(np.arange(len(first)), counts)
    order = np.arange(len(number)) - np.repeat(np.cumsum(counts) - counts, counts)
    starts = first[number] + order * longest
    final = order == counts[number] - 1
    return starts, np.where(final, last[number], starts + longest), number


def _finished(pairs: Pairs, task: PairTask | None, key: int) -> Plan:
    """The plan of the pairs, half of them swapped when their order is the question."""
    swap = None
    if task == "sentence_order":
        swap = uniforms(key_of(key, "swap"), np.arange(len(pairs.labels))) < 0.5
    return pairs.plan(swap=swap, labeled=task is not None)


def full_sentences(view: CorpusView, room: int, short: float, key: int) -> Plan:
    """Sentences of documents in a random order; a separator stands where a document begins.

    RoBERTa's FULL-SENTENCES (arXiv:1907.11692).
    """
    return _packed(view, room, short, key, across=True)


def doc_sentences(view: CorpusView, room: int, short: float, key: int) -> Plan:
    """Sentences of one document only: RoBERTa's DOC-SENTENCES."""
    return _packed(view, room, short, key, across=False)


def _packed(view: CorpusView, room: int, short: float, key: int, *, across: bool) -> Plan:
    starts, stops, documents = view.pieces(room)
    if across:
        first = np.searchsorted(documents, np.arange(view.count))
        last = np.searchsorted(documents, np.arange(view.count), side="right")
        order = shuffled(view.count, key, "documents")
        pieces = spread(first[order], (last - first)[order])
        starts, stops, documents = starts[pieces], stops[pieces], documents[pieces]
    opens = np.ones(len(starts), dtype=bool)  # pieces that begin a document
    opens[1:] = documents[1:] != documents[:-1]
    costs = stops - starts + (opens if across else 0)
    total = np.concatenate([[0], np.cumsum(costs)])
    begins = _example_starts(total, opens, room, short, key, across=across)
    cuts = np.flatnonzero(begins | opens)
    last_piece = np.append(cuts[1:], len(starts)) - 1
    examples = np.flatnonzero(begins)
    return Plan(
        first=np.append(np.searchsorted(cuts, examples), len(cuts)),
        starts=starts[cuts],
        stops=stops[last_piece],
    )


def _example_starts(
    total: Longs, opens: Flags, room: int, short: float, key: int, *, across: bool
) -> Flags:
    """Which pieces begin an example: as many pieces as fit, in many streams at a time."""
    begins = np.zeros(len(opens), dtype=bool)
    at, stop = _streams(total, opens, STRETCH * room, across=across)
    owner = np.arange(len(at))
    step = 0
    while len(at):
        begins[at] = True
        draws = StepDraws(key, owner, step)
        step += 1
        # An example that begins with a document needs no separator for it.
        most = total[at] + targets(draws, room, short) + (opens[at] if across else 0)
        end = np.searchsorted(total, most, side="right") - 1
        at = np.minimum(np.maximum(end, at + 1), stop)
        alive = at < stop
        at, stop, owner = at[alive], stop[alive], owner[alive]
    return begins


def _streams(total: Longs, opens: Flags, longest: int, *, across: bool) -> tuple[Longs, Longs]:
    """Where streams of pieces begin and end: every `longest` tokens, and at documents."""
    wanted = np.arange(0, int(total[-1]), longest)
    starts = np.searchsorted(total[:-1], wanted, side="left")
    starts = starts[starts < len(opens)]
    if not across:
        starts = np.concatenate([starts, np.flatnonzero(opens)])
    starts = np.unique(starts)
    return starts, np.append(starts[1:], len(opens))
