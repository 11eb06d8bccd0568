"""Plans for questions about sentences: in which order they stood, how far apart.

The structure tasks of ERNIE 2.0 (Sun et al. 2019, arXiv:1907.12412).
"""

from __future__ import annotations

from itertools import permutations
from math import factorial

import numpy as np

from bertsmith.corpus.plans import Pairs, Plan, doc_sentences
from bertsmith.corpus.rows import Longs
from bertsmith.corpus.view import CorpusView
from bertsmith.errors import ConfigError
from bertsmith.random_keys import key_of, uniforms

MOST_SEGMENTS = 3  # m: a paragraph is cut into 1 to m segments
# The order of each class: which segment stands in each place, -1 where there is none.
ORDERS = np.array(
    [
        [*order, *[-1] * (MOST_SEGMENTS - count)]
        for count in range(1, MOST_SEGMENTS + 1)
        for order in permutations(range(count))
    ],
    dtype=np.int64,
)
SEGMENT_COUNTS = (ORDERS >= 0).sum(1)  # (C,) segments of each class
FACTORIALS = np.array([factorial(count) for count in range(MOST_SEGMENTS + 1)])
FIRST_CLASS = np.cumsum(FACTORIALS) - FACTORIALS - 1  # of each number of segments
NEXT, SAME_DOCUMENT, OTHER_DOCUMENT = 0, 1, 2
DISTANCES = 3


def reordered(view: CorpusView, room: int, short: float, key: int) -> Plan:
    """Paragraphs of two sentences or more, cut at sentences into segments that change places.

    The label is the row of ORDERS. The number of segments is drawn first, then their order.
    """
    inner = room - (MOST_SEGMENTS - 1)  # a separator stands between segments
    base = doc_sentences(view, max(inner, 1), short, key)
    low = np.searchsorted(view.sentences, base.starts, side="right")
    borders = np.searchsorted(view.sentences, base.stops, side="left") - low
    chosen = np.flatnonzero(borders > 0)
    start, stop = base.starts[chosen], base.stops[chosen]
    low, borders = low[chosen], borders[chosen]
    numbers = np.arange(len(chosen))

    def below(stream: str, limits: Longs) -> Longs:
        drawn: Longs = (uniforms(key_of(key, stream), numbers) * limits).astype(np.int64)
        return drawn

    counts = 1 + below("segments", np.minimum(borders + 1, MOST_SEGMENTS))
    one = below("first cut", borders)
    other = below("second cut", np.maximum(borders - 1, 1))
    other = other + (other >= one)
    two = np.where(counts == MOST_SEGMENTS, other, one)
    cuts = np.stack([np.minimum(one, two), np.maximum(one, two)], axis=1)
    places = view.sentences[np.minimum(low[:, None] + cuts, len(view.sentences) - 1)]
    labels = FIRST_CLASS[counts] + below("order", FACTORIALS[counts])
    begins = np.column_stack([start, places[:, 0], places[:, 1]])
    ends = np.column_stack([places[:, 0], places[:, 1], stop])
    ends[counts == 1, 0] = stop[counts == 1]
    ends[counts == 2, 1] = stop[counts == 2]
    order = ORDERS[labels]
    there = order >= 0
    order = np.where(there, order, 0)
    return Plan(
        first=np.concatenate([[0], np.cumsum(SEGMENT_COUNTS[labels])]),
        starts=np.take_along_axis(begins, order, axis=1)[there],
        stops=np.take_along_axis(ends, order, axis=1)[there],
        labels=labels,
    )


def parts_of_documents(view: CorpusView, room: int, short: float, key: int) -> Plan:
    """Sentences of one document, without documents that are one example as a whole."""
    plan = doc_sentences(view, room, short, key)
    document = np.searchsorted(view.starts, plan.starts, side="right") - 1
    chosen = np.flatnonzero(plan.stops - plan.starts < (view.stops - view.starts)[document])
    return Plan(
        first=np.arange(len(chosen) + 1), starts=plan.starts[chosen], stops=plan.stops[chosen]
    )


def distances(view: CorpusView, room: int, key: int) -> Plan:
    """Pairs of sentences: neighbors, of one document and no neighbors, or of two documents.

    A sentence longer than half of `room` counts as several. Every second sentence of a document
    is an A; the kinds of B that there are for it are equally likely.
    """
    if view.count < 2:
        raise ConfigError(
            "the distance of sentences needs a second document to take them from; this corpus has "
            "one: put blank lines between documents, or set program.objectives.distance=0"
        )
    starts, stops, documents = view.pieces(max(room // 2, 1))
    first = np.searchsorted(documents, np.arange(view.count))
    last = np.searchsorted(documents, np.arange(view.count), side="right")
    late = uniforms(key_of(key, "late"), np.arange(view.count)) < 0.5
    number = np.arange(len(starts))
    turn = (number - first[documents] + late[documents]) % 2 == 0
    a = number[turn & (number + 1 < last[documents])]
    own = documents[a]
    low, high = np.maximum(a - 1, first[own]), np.minimum(a + 2, last[own])
    size = last[own] - first[own]
    away = size - (high - low)  # sentences of the document that are not next to A
    kinds = np.column_stack([np.ones(len(a), bool), away > 0, np.ones(len(a), bool)])
    draws = {name: uniforms(key_of(key, name), a) for name in ("kind", "same", "other")}
    nth = (draws["kind"] * kinds.sum(1)).astype(np.int64)
    labels = np.argmax(np.cumsum(kinds, axis=1) == (nth + 1)[:, None], axis=1)
    same = first[own] + (draws["same"] * away).astype(np.int64)
    same += np.where(same >= low, high - low, 0)
    other = (draws["other"] * (len(starts) - size)).astype(np.int64)
    other += np.where(other >= first[own], size, 0)
    b = np.choose(labels, [a + 1, np.minimum(same, len(starts) - 1), other])
    pairs = Pairs(
        a=(starts[a], stops[a]), b=(starts[b], stops[b]), labels=labels.astype(np.int64), owner=a
    )
    return pairs.plan(labeled=True)
