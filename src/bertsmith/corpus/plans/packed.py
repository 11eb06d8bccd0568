"""Full sentences one after another, across documents or inside them (Liu et al. 2019)."""

from __future__ import annotations

import numpy as np

from bertsmith.corpus.plans.pairs import STRETCH
from bertsmith.corpus.plans.plan import Plan, StepDraws, spread, targets
from bertsmith.corpus.rows import Flags, Longs
from bertsmith.corpus.view import CorpusView
from bertsmith.random_keys import shuffled


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
