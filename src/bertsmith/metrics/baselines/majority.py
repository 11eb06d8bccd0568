"""The commonest answer, whatever the text says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from bertsmith.metrics.arrays import Floats, Ints, classes_of, floats, marks
from bertsmith.metrics.baselines.baseline import Texts
from bertsmith.metrics.multilabel import Decisions, decide


def classify(texts: Texts, targets: ArrayLike, new: Texts, labels: Sequence[str]) -> Floats:
    """(N, C): the share of each class, for every text."""
    numbers = classes_of(targets, len(labels), "targets")
    counts = np.bincount(numbers, minlength=len(labels))
    return np.tile(counts / counts.sum(), (len(new), 1))


def multilabel(texts: Texts, targets: ArrayLike, new: Texts, labels: Sequence[str]) -> Decisions:
    """The labels that at least half of the rows have; if none has, the commonest one."""
    shares = marks(targets, "targets").mean(axis=0)
    return decide(np.tile(shares, (len(new), 1)), min(0.5, shares.max(initial=0.0)))


def regress(texts: Texts, targets: ArrayLike, new: Texts, labels: Sequence[str]) -> Floats:
    """The mean for every text; its correlation with anything is nan."""
    return np.full(len(new), floats(targets, 1, "targets").mean())


def tag(
    texts: Texts, targets: Sequence[Sequence[str]], new: Texts, labels: Sequence[str]
) -> list[list[str]]:
    """The commonest tag for every unit."""
    counts = Counter(name for tags in targets for name in tags)
    (name, _) = counts.most_common(1)[0] if counts else ("O", 0)
    return [[name] * len(units) for units in new]


def answer(
    texts: Texts, targets: Sequence[Sequence[str]], new: Texts, labels: Sequence[str]
) -> list[str]:
    """The commonest gold text, which is "" where most questions have no answer."""
    counts = Counter(golds[0] if golds else "" for golds in targets)
    (text, _) = counts.most_common(1)[0] if counts else ("", 0)
    return [text] * len(new)


def choose(texts: Texts, targets: ArrayLike, new: Texts, labels: Sequence[str]) -> Ints:
    """The commonest place of the right choice, among the choices a row has."""
    counts = np.bincount(np.asarray(targets, dtype=np.int64))
    return np.array([counts[: len(fields) - 1].argmax() for fields in new], dtype=np.int64)
