"""From sentence data to the rows of an objective: which columns it compares, with which targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bertsmith.errors import ConfigError, InputFileError
from bertsmith.labeled.pairs.pairs import SentenceData, negative_label, positive_label
from bertsmith.metrics.arrays import Floats

RANGES = ((0.0, 1.0), (-1.0, 1.0), (0.0, 5.0), (0.0, 10.0), (0.0, 100.0))
USUAL = {"scores": "cosent", "triplets": "contrastive", "pairs": "contrastive", "texts": "simcse"}
KINDS: Mapping[str, tuple[str, ...]] = {
    "softmax": ("labels",),
    "cosine": ("scores", "labels"),
    "cosent": ("scores", "labels"),
    "triplet": ("triplets", "labels"),
    "contrastive": ("pairs", "triplets", "labels"),
    "simcse": ("texts", "pairs", "triplets", "labels", "scores"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRows:
    """The texts of each row in columns, equally many in all rows; targets (N,) if there are any.

    `classes` are the names of target numbers; `notes` say what became of the file's rows.
    """

    columns: Sequence[tuple[str, ...]]
    targets: Floats | None = None
    classes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.columns)


def usual_objective(data: SentenceData) -> str:
    """The objective for data that none was named for.

    Pairs that mean the same or not are ranked (CoSENT); three or more classes are classified.
    """
    if data.kind == "labels":
        return "cosent" if len(data.labels) == 2 and positive_label(data) else "softmax"
    return USUAL[data.kind]


def training_rows(
    data: SentenceData,
    objective: str,
    *,
    positive: str | None = None,
    bounds: tuple[float, float] | None = None,
) -> TrainingRows:
    """The rows of an objective; `positive` is the label of pairs that mean the same.

    `bounds` are the lowest and the highest possible score.
    """
    if data.kind not in KINDS[objective]:
        raise ConfigError(_misfit(data, objective))
    if objective == "softmax":
        return _classified(data)
    if objective == "simcse" and data.kind in ("texts", "scores"):
        texts = data.texts()
        notes = (f"scores are not used: {len(texts):,} texts",) if data.kind == "scores" else ()
        return TrainingRows(columns=[(text, text) for text in texts], notes=notes)
    if objective in ("cosine", "cosent"):
        return _scored(data, positive, bounds)
    if data.kind == "labels":
        return _from_labels(data, objective, positive)
    if objective == "triplet":
        return TrainingRows(
            columns=[(row[0], row[1], negative) for row in data.rows for negative in row[2:]]
        )
    return TrainingRows(columns=list(data.rows))


def unit_scores(
    data: SentenceData, bounds: tuple[float, float] | None = None
) -> tuple[Floats, tuple[float, float]]:
    """Scores from 0 to 1 (from -1 if `bounds` begin below 0), and the bounds they lay in."""
    if data.targets is None:
        raise ConfigError(f"{data.source} has no scores; name their column with --label")
    scores = data.targets
    if bounds is not None:
        low, high = bounds
        if not low < high:
            raise ConfigError(f"data.range is from {low:g} to {high:g}; give the lower bound first")
        wrong = np.flatnonzero((scores < low) | (scores > high))
        if wrong.size:
            row = int(wrong[0])
            raise InputFileError(
                f"{data.place(row)}: the score {scores[row]:g} is not between {low:g} and "
                f"{high:g}, as data.range says; correct it, or the range"
            )
    else:
        fitting = [r for r in RANGES if r[0] <= scores.min() and scores.max() <= r[1]]
        if not fitting:
            row = int(np.abs(scores).argmax())
            raise InputFileError(
                f"{data.place(row)}: the score {scores[row]:g} fits none of the usual ranges "
                f"({', '.join(f'{low:g} to {high:g}' for low, high in RANGES)}); set data.range"
            )
        low, high = fitting[0]
    if scores.min() == scores.max():
        raise InputFileError(
            f"{data.source}: all {len(scores):,} scores are {scores[0]:g}; there is no difference "
            "to learn from"
        )
    unit: Floats = scores / high if low < 0 else (scores - low) / (high - low)
    return unit, (low, high)


def pair_labels(data: SentenceData, positive: str | None = None) -> tuple[Floats, str]:
    """1 for pairs that mean the same, 0 for others, and the label that says so."""
    name = positive_label(data, positive)
    if name is None:
        raise ConfigError(
            f"{data.source}: which of the labels {', '.join(data.labels[:8])} means that two texts "
            "say the same? Set data.positive"
        )
    if data.targets is None or len(data.labels) < 2:
        raise InputFileError(
            f"{data.source}: every pair has the label {data.labels[0]!r}; one class only cannot be "
            "told apart"
        )
    return (data.targets == data.labels.index(name)).astype(np.float64), name


def _classified(data: SentenceData) -> TrainingRows:
    if len(data.labels) < 2:
        raise InputFileError(
            f"{data.source}: every pair has the label {data.labels[0]!r}; softmax needs at least "
            "two classes"
        )
    return TrainingRows(columns=list(data.rows), targets=data.targets, classes=data.labels)


def _scored(
    data: SentenceData, positive: str | None, bounds: tuple[float, float] | None
) -> TrainingRows:
    if data.kind == "labels":
        marks, name = pair_labels(data, positive)
        note = f"label {name!r} counts as 1, the others as 0"
        return TrainingRows(columns=list(data.rows), targets=marks, notes=(note,))
    unit, (low, high) = unit_scores(data, bounds)
    note = f"scores from {low:g} to {high:g} are learned as {-1 if low < 0 else 0} to 1"
    return TrainingRows(columns=list(data.rows), targets=unit, notes=(note,))


def _from_labels(data: SentenceData, objective: str, positive: str | None) -> TrainingRows:
    """Pairs of the positive label; with contradictions of the same first text, triplets."""
    marks, name = pair_labels(data, positive)
    opposite = negative_label(data, name)
    against: dict[str, list[str]] = {}
    if opposite is not None and data.targets is not None:
        number = data.labels.index(opposite)
        for row, target in zip(data.rows, data.targets, strict=True):
            if target == number:
                against.setdefault(row[0], []).append(row[1])
    same = [row for row, mark in zip(data.rows, marks, strict=True) if mark]
    triplets = [
        (*row, wrong) for row in same for wrong in against.get(row[0], [])[:1] if wrong != row[1]
    ]
    if len(triplets) * 2 >= len(same) or objective == "triplet":
        if not triplets:
            raise InputFileError(
                f"{data.source}: no first text has a pair labeled {name!r} and one labeled "
                f"{opposite or 'the opposite'!r}, so there is no triplet; use softmax"
            )
        left = len(same) - len(triplets)
        note = f"{len(triplets):,} triplets of {name!r} and {opposite!r} with the same first text"
        return TrainingRows(
            columns=triplets, notes=(note + (f"; {left:,} pairs left out" if left else ""),)
        )
    note = f"{len(same):,} pairs labeled {name!r} are learned; others of the batch are negatives"
    return TrainingRows(columns=same, notes=(note,))


def _misfit(data: SentenceData, objective: str) -> str:
    if objective in ("cosine", "cosent", "softmax"):
        what = "a label" if objective == "softmax" else "a score"
        return (
            f"the objective {objective} needs {what} per pair, and {data.source} holds "
            f"{data.kind}; name the column with --label, or use {usual_objective(data)}"
        )
    return (
        f"the objective {objective} learns from {' or '.join(KINDS[objective])}, and {data.source} "
        f"holds {data.kind}; use {usual_objective(data)}, or set --row-kind"
    )
