"""Majority baselines: the most frequent target for every text, for `tag` also per word."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bertsmith.metrics.arrays import Floats, Ints, classes_of, floats, marks
from bertsmith.metrics.multilabel import Decisions, decide

Texts = Sequence[Sequence[str]]
"""The fields of each row, or the units of each text."""

Baseline = Callable[[Texts, Any, Texts, Sequence[str]], Any]
"""Texts, their targets, new texts, labels -> predictions for the new texts."""


def classify(texts: Texts, targets: ArrayLike, new: Texts, labels: Sequence[str]) -> Floats:
    """(N, C): the share of each class, for every text."""
    numbers = classes_of(targets, len(labels), "targets")
    counts = np.bincount(numbers, minlength=len(labels))
    return np.tile(counts / counts.sum(), (len(new), 1))


def multilabel(texts: Texts, targets: ArrayLike, new: Texts, labels: Sequence[str]) -> Decisions:
    """The labels that at least half of the rows have; if none has, the most frequent one."""
    shares = marks(targets, "targets").mean(axis=0)
    return decide(np.tile(shares, (len(new), 1)), min(0.5, shares.max(initial=0.0)))


def regress(texts: Texts, targets: ArrayLike, new: Texts, labels: Sequence[str]) -> Floats:
    """The mean for every text; its correlation with anything is nan."""
    return np.full(len(new), floats(targets, 1, "targets").mean())


def tag(
    texts: Texts, targets: Sequence[Sequence[str]], new: Texts, labels: Sequence[str]
) -> list[list[str]]:
    """The most frequent tag for every unit."""
    counts = Counter(name for tags in targets for name in tags)
    (name, _) = counts.most_common(1)[0] if counts else ("O", 0)
    return [[name] * len(units) for units in new]


def tag_words(
    texts: Texts, targets: Sequence[Sequence[str]], new: Texts, labels: Sequence[str]
) -> list[list[str]]:
    """The most frequent tag of each unit in training; an unseen unit gets the most frequent one."""
    by_unit: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for units, tags in zip(texts, targets, strict=True):
        for unit, name in zip(units, tags, strict=True):
            by_unit[unit][name] += 1
    total: Counter[str] = sum(by_unit.values(), Counter())
    unseen = total.most_common(1)[0][0] if total else "O"
    usual = {unit: counts.most_common(1)[0][0] for unit, counts in by_unit.items()}
    return [[usual.get(unit, unseen) for unit in units] for units in new]


def answer(
    texts: Texts, targets: Sequence[Sequence[str]], new: Texts, labels: Sequence[str]
) -> list[str]:
    """The most frequent gold text, which is "" where most questions have no answer."""
    counts = Counter(golds[0] if golds else "" for golds in targets)
    (text, _) = counts.most_common(1)[0] if counts else ("", 0)
    return [text] * len(new)


def choose(texts: Texts, targets: ArrayLike, new: Texts, labels: Sequence[str]) -> Ints:
    """The most frequent index of the right choice, among the choices a row has."""
    counts = np.bincount(np.asarray(targets, dtype=np.int64))
    return np.array([counts[: len(fields) - 1].argmax() for fields in new], dtype=np.int64)
