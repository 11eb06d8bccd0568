"""Entities in tagged text: spans from tags, legal or not, and their precision, recall and F1.

Two readings, equal to seqeval's. The default one is conlleval's: an I that continues nothing
begins an entity. The strict one (IOB2) takes what begins with B only. Spans are (type, start, end)
with the end behind the last unit. A bare `B` or `I` has the type `_`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bertsmith.errors import ConfigError
from bertsmith.metrics.arrays import Floats, Ints, check_rows, share

Span = tuple[str, int, int]
Reading = Callable[[Sequence[str]], list[Span]]

# BMES writes M for I, BILOU writes L for E and U for S.
LETTERS = {letter: letter for letter in "BIES"} | {"M": "I", "L": "E", "U": "S"}


@dataclass(frozen=True, slots=True)
class EntityFigures:
    """Precision, recall and F1: of all entities, their mean over types, and of each type."""

    precision: float
    recall: float
    f1: float
    macro_precision: float
    macro_recall: float
    macro_f1: float
    by_type: dict[str, tuple[float, float, float, int]]  # precision, recall, F1, support


def spans(tags: Sequence[str]) -> list[Span]:
    """The entities as conlleval reads them, in any of BIO, BIOES, BMES and BILOU."""
    found: list[Span] = []
    letter, kind = "O", ""
    for place, tag in enumerate(tags):
        previous, before = letter, kind
        letter, kind = split_tag(tag)
        if letter == "O":
            continue
        # B and S begin, E and S end; what follows neither an entity nor its own type begins, too.
        if letter in "BS" or previous in "OES" or kind != before:
            found.append((kind, place, place + 1))
        else:
            found[-1] = (kind, found[-1][1], place + 1)
    return found


def strict_spans(tags: Sequence[str]) -> list[Span]:
    """The entities of strict BIO (IOB2): a B and the I of its type that follow it."""
    found: list[Span] = []
    inside = ""
    for place, tag in enumerate(tags):
        letter, kind = split_tag(tag)
        if letter == "B":
            found.append((kind, place, place + 1))
            inside = kind
        elif letter == "I" and inside and kind == inside:
            found[-1] = (kind, found[-1][1], place + 1)
        elif letter in "OI":
            inside = ""
        else:
            raise ConfigError(f"tag {tag!r} at place {place} is not BIO; convert it with to_bio")
    return found


def to_bio(tags: Sequence[str]) -> list[str]:
    """Tags of any known scheme as legal BIO with the same entities."""
    return written(spans(tags), len(tags))


def written(entities: Iterable[Span], units: int) -> list[str]:
    """Spans that do not overlap as BIO tags of `units` units."""
    tags = ["O"] * units
    for kind, start, end in entities:
        tags[start:end] = [f"B-{kind}", *[f"I-{kind}"] * (end - start - 1)]
    return tags


def split_tag(tag: str) -> tuple[str, str]:
    """The letter (B, I, E, S or O) and the type of a tag."""
    if tag == "O":
        return "O", ""
    letter = LETTERS.get(tag[:1])
    if letter is None or tag[1:2] not in ("", "-"):
        raise ConfigError(f"tag {tag!r} is neither O nor B-, I-, E-, S- (or M-, L-, U-) and a type")
    return letter, tag[2:] or "_"


def entity_counts(
    targets: Sequence[Sequence[str]],
    predictions: Sequence[Sequence[str]],
    reading: Reading = spans,
) -> tuple[Ints, list[str]]:
    """Tags of N texts -> (N, 3, types): entities right, given and wanted; and the types, sorted."""
    check_rows(targets, predictions)
    pairs: list[tuple[set[Span], set[Span]]] = []
    for row, (target, prediction) in enumerate(zip(targets, predictions, strict=True)):
        if len(target) != len(prediction):
            raise ConfigError(
                f"text {row}: {len(target)} units stand against {len(prediction)} predicted tags"
            )
        pairs.append((set(reading(target)), set(reading(prediction))))
    types = sorted({kind for sides in pairs for side in sides for kind, _, _ in side})
    place = {kind: number for number, kind in enumerate(types)}
    counts = np.zeros((len(pairs), 3, len(types)), dtype=np.int64)
    for row, (wanted, given) in enumerate(pairs):
        for number, side in enumerate((wanted & given, given, wanted)):
            for kind, _, _ in side:
                counts[row, number, place[kind]] += 1
    return counts, types


def entity_figures(counts: Ints | Floats, types: Sequence[str]) -> EntityFigures:
    """(N, 3, types) counts -> the figures; 0 where there is nothing to divide by.

    The mean over types takes those that occur on either side.
    """
    right, given, wanted = counts.sum(axis=0)  # (types,) each
    parts = share(right, given), share(right, wanted), share(2 * right, given + wanted)
    occurs = (given + wanted) > 0
    macro = [float(part[occurs].mean()) if occurs.any() else 0.0 for part in parts]
    return EntityFigures(
        precision=float(share(right.sum(), given.sum())),
        recall=float(share(right.sum(), wanted.sum())),
        f1=float(share(2 * right.sum(), given.sum() + wanted.sum())),
        macro_precision=macro[0],
        macro_recall=macro[1],
        macro_f1=macro[2],
        by_type={
            kind: (float(parts[0][n]), float(parts[1][n]), float(parts[2][n]), int(wanted[n]))
            for n, kind in enumerate(types)
            if occurs[n]
        },
    )
