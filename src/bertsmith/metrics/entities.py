"""Entities in tagged text: spans, precision, recall and F1 as conlleval and seqeval compute them.

An I that continues no entity begins one. Spans are (type, start, end), the end exclusive. A bare
`B` or `I` has the type `_`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bertsmith.errors import ConfigError
from bertsmith.metrics.arrays import Floats, Ints, check_rows, share
from bertsmith.metrics.metric import Metric

Span = tuple[str, int, int]
Tags = Sequence[Sequence[str]]

# BMES writes M for I, BILOU writes L for E and U for S.
LETTERS = {letter: letter for letter in "BIES"} | {"M": "I", "L": "E", "U": "S"}


@dataclass(frozen=True, slots=True)
class EntityFigures:
    """Precision, recall and F1 of all entities, mean F1 over types, and the metrics per type."""

    precision: float
    recall: float
    f1: float
    macro_f1: float
    by_type: dict[str, tuple[float, float, float, int]]  # precision, recall, F1, support


def spans(tags: Sequence[str]) -> list[Span]:
    """The entities as conlleval reads them, in any of BIO, BIOES, BMES and BILOU."""
    entities: list[Span] = []
    letter, kind = "O", ""
    for place, tag in enumerate(tags):
        previous, before = letter, kind
        letter, kind = split_tag(tag)
        if letter == "O":
            continue
        # B and S begin, E and S end; what follows neither an entity nor its own type begins, too.
        if letter in "BS" or previous in "OES" or kind != before:
            entities.append((kind, place, place + 1))
        else:
            entities[-1] = (kind, entities[-1][1], place + 1)
    return entities


def split_tag(tag: str) -> tuple[str, str]:
    """The letter (B, I, E, S or O) and the type of a tag."""
    if tag == "O":
        return "O", ""
    letter = LETTERS.get(tag[:1])
    if letter is None or tag[1:2] not in ("", "-"):
        raise ConfigError(f"tag {tag!r} is neither O nor B-, I-, E-, S- (or M-, L-, U-) and a type")
    return letter, tag[2:] or "_"


def entity_counts(
    targets: Tags,
    predictions: Tags,
    spans_of: Callable[[Sequence[str]], list[Span]] = spans,
) -> tuple[Ints, list[str]]:
    """Tags of N texts -> (N, 3, types): true positives, predicted, gold; and the sorted types."""
    check_rows(targets, predictions)
    pairs: list[tuple[set[Span], set[Span]]] = []
    for row, (target, prediction) in enumerate(zip(targets, predictions, strict=True)):
        if len(target) != len(prediction):
            raise ConfigError(
                f"text {row}: {len(target)} units, but {len(prediction)} predicted tags"
            )
        pairs.append((set(spans_of(target)), set(spans_of(prediction))))
    types = sorted({kind for sides in pairs for side in sides for kind, _, _ in side})
    place = {kind: number for number, kind in enumerate(types)}
    counts = np.zeros((len(pairs), 3, len(types)), dtype=np.int64)
    for row, (wanted, given) in enumerate(pairs):
        for number, side in enumerate((wanted & given, given, wanted)):
            for kind, _, _ in side:
                counts[row, number, place[kind]] += 1
    return counts, types


def entity_figures(counts: Ints | Floats, types: Sequence[str]) -> EntityFigures:
    """(N, 3, types) counts -> the metrics; 0 where a denominator is 0.

    The mean over types is over those that occur in targets or predictions.
    """
    right, given, wanted = counts.sum(axis=0)  # (types,) each
    parts = share(right, given), share(right, wanted), share(2 * right, given + wanted)
    occurs = (given + wanted) > 0
    return EntityFigures(
        precision=float(share(right.sum(), given.sum())),
        recall=float(share(right.sum(), wanted.sum())),
        f1=float(share(2 * right.sum(), given.sum() + wanted.sum())),
        macro_f1=float(parts[2][occurs].mean()) if occurs.any() else 0.0,
        by_type={
            kind: (float(parts[0][n]), float(parts[1][n]), float(parts[2][n]), int(wanted[n]))
            for n, kind in enumerate(types)
            if occurs[n]
        },
    )


KINDS = ("right", "other type", "other borders", "other type and borders", "missed", "invented")


def entity_errors(targets: Tags, predictions: Tags) -> dict[str, int]:
    """Counts by kind of error; a predicted entity is paired with at most one gold entity."""
    total: Counter[str] = Counter()
    for wanted, given in zip(targets, predictions, strict=True):
        total.update(_compared(spans(wanted), spans(given)))
    return {kind: total[kind] for kind in KINDS}


def _compared(wanted: Sequence[Span], given: Sequence[Span]) -> Counter[str]:
    counts: Counter[str] = Counter(right=len(set(wanted) & set(given)))
    open_wanted = [span for span in wanted if span not in set(given)]
    open_given = [span for span in given if span not in set(wanted)]
    for kind, matches in _PARTIAL_MATCHES:
        for span in list(open_wanted):
            partner = next((other for other in open_given if matches(span, other)), None)
            if partner is not None:
                open_wanted.remove(span)
                open_given.remove(partner)
                counts[kind] += 1
    counts["missed"] += len(open_wanted)
    counts["invented"] += len(open_given)
    return counts


def _overlap(one: Span, other: Span) -> bool:
    return one[1] < other[2] and other[1] < one[2]


# The closest match first: a span is paired with the one that differs least.
_PARTIAL_MATCHES: tuple[tuple[str, Callable[[Span, Span], bool]], ...] = (
    ("other type", lambda one, other: one[1:] == other[1:]),
    ("other borders", lambda one, other: one[0] == other[0] and _overlap(one, other)),
    ("other type and borders", _overlap),
)


def _rows(targets: Tags, predictions: Tags, labels: Sequence[str]) -> Floats:
    """Tags of N texts, unit by unit -> (N, 3 types + 2): entity counts, units right, units."""
    known = set(labels).union(*targets, *predictions)
    counts, _ = entity_counts(targets, predictions, spans if _mark_entities(known) else _units)
    right = [
        sum(map(str.__eq__, wanted, given))
        for wanted, given in zip(targets, predictions, strict=True)
    ]
    units = [len(wanted) for wanted in targets]
    return np.column_stack([counts.reshape(len(targets), -1), right, units]).astype(np.float64)


def _figures(rows: Floats, labels: Sequence[str]) -> dict[str, float]:
    counts = rows[:, :-2].reshape(len(rows), 3, -1)
    figures = entity_figures(counts, [str(number) for number in range(counts.shape[2])])
    right, units = rows[:, -2:].sum(axis=0)
    return {
        "f1": figures.f1,
        "precision": figures.precision,
        "recall": figures.recall,
        "f1_macro": figures.macro_f1,
        "accuracy": float(right / units) if units else 0.0,
    }


def _mark_entities(tags: set[str]) -> bool:
    """Whether all tags belong to an entity scheme; part-of-speech tags do not."""
    try:
        for tag in tags:
            split_tag(tag)
    except ConfigError:
        return False
    return True


def _units(tags: Sequence[str]) -> list[Span]:
    return [(tag, place, place + 1) for place, tag in enumerate(tags)]


TAGS = Metric("f1", _rows, _figures)
