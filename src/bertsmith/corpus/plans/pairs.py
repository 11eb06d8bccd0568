"""Pairs of segments or sentences, as BERT's data script makes them, many documents at a time.

Each text is used about once an epoch: the part of a chunk that a random B left unused is put back
and begins the next example (Devlin et al. 2018, arXiv:1810.04805).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from bertsmith.corpus.plans.plan import Pairs, Plan, StepDraws, gathered, targets
from bertsmith.corpus.rows import Flags, Longs
from bertsmith.corpus.view import CorpusView
from bertsmith.errors import ConfigError
from bertsmith.random_keys import Floats, key_of, uniforms

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
