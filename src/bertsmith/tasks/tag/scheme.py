"""BIO tags: the label set, legal transitions, and the spans they mark."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

from bertsmith.errors import ConfigError
from bertsmith.metrics.entities import spans
from bertsmith.tasks.prediction import PredictedSpan
from bertsmith.tasks.tag.paths import Steps

OUTSIDE = "O"
BIO = re.compile(r"O|[BI](-.+)?", re.DOTALL)


def is_bio(labels: Iterable[str]) -> bool:
    """Whether labels mark spans; others, such as parts of speech, label single units."""
    return all(BIO.fullmatch(label) for label in labels)


def labels_of(tags: Iterable[str]) -> tuple[str, ...]:
    """The labels to learn for tags that occur: O, then B and I of every kind.

    A kind has both even if one of them was not seen: rows still to come may have it.
    """
    seen = set(tags)
    if not is_bio(seen):
        return tuple(sorted(seen))
    kinds = sorted({tag[1:] for tag in seen - {OUTSIDE}})  # "-PER", or "" of bare B and I
    pairs = [letter + kind for kind in kinds for letter in "BI"]
    named = any(kinds) or not kinds
    return (OUTSIDE, *pairs) if OUTSIDE in seen or named else tuple(pairs)


def legal_steps(labels: Sequence[str]) -> Steps:
    """0 where a tag is legal, -inf where not: I-X follows B-X or I-X only."""
    start, between = np.zeros(len(labels)), np.zeros((len(labels), len(labels)))
    if is_bio(labels):
        for to, label in enumerate(labels):
            if label[0] == "I":
                start[to] = -np.inf
                begun = (f"B{label[1:]}", label)
                between[[before not in begun for before in labels], to] = -np.inf
    if not np.isfinite(start).any():
        raise ConfigError(
            f"no sequence can begin with any of the labels {', '.join(labels[:20])}; "
            "each I-KIND needs its B-KIND"
        )
    return Steps(start, between, np.zeros(len(labels)))


def tag_spans(
    text: str,
    units: Sequence[tuple[int, int]],
    tags: Sequence[str],
    *,
    bio: bool,
    chances: Sequence[float] | None = None,
) -> tuple[PredictedSpan, ...]:
    """The pieces of a text that tags mark; with labels that are not BIO, every unit is one.

    `chances` are the probabilities of predicted tags.
    """
    entities = []
    for kind, first, last in spans(tags) if bio else _single(tags):
        start, end = units[first][0], units[last - 1][1]
        sure = None if chances is None else min(chances[first:last])
        entities.append(PredictedSpan(start, end, kind, text[start:end], sure))
    return tuple(entities)


def _single(tags: Sequence[str]) -> list[tuple[str, int, int]]:
    return [(tag, at, at + 1) for at, tag in enumerate(tags) if tag != OUTSIDE]
