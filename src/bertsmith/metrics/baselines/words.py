"""Linear models on TF-IDF features: logistic regression for labels, ridge for numbers.

Both are scikit-learn's, with settings chosen once on training rows: C by cross-validation on BBC,
SST-2, ChnSentiCorp, LCQMC and AFQMC, alpha on a fifth of STS-B. One thread gives sums one order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from bertsmith.metrics.arrays import Bools, Floats, Ints, classes_of, floats, marks
from bertsmith.metrics.baselines.baseline import Texts
from bertsmith.metrics.baselines.tfidf import Features, tfidf
from bertsmith.metrics.multilabel import Decisions, decide, tune_thresholds

_FOLDS = 5
C = 3.0  # of 1, 3, 10: the inverse strength of the L2 penalty
ALPHA = 1.0  # of 0.3, 1, 3: the L2 penalty of ridge regression


def classify_words(texts: Texts, targets: ArrayLike, new: Texts, labels: Sequence[str]) -> Floats:
    """(N, C) probabilities by one-vs-rest logistic regression."""
    numbers = classes_of(targets, len(labels), "targets")
    known, asked = tfidf(texts, new)
    chances = _yes(known, numbers[:, None] == np.arange(len(labels)), asked)
    result: Floats = chances / chances.sum(axis=1, keepdims=True)
    return result


def multilabel_words(
    texts: Texts, targets: ArrayLike, new: Texts, labels: Sequence[str]
) -> Decisions:
    """A logistic regression for each label; thresholds are tuned on a fifth held out."""
    wanted = marks(targets, "targets")
    known, asked = tfidf(texts, new)
    held = np.arange(len(wanted)) % _FOLDS == _FOLDS - 1
    thresholds: float | Floats = 0.5
    if held.any():
        trial = _yes(known[~held], wanted[~held], known[held])
        thresholds = tune_thresholds(trial, wanted[held])
    return decide(_yes(known, wanted, asked), thresholds)


def regress_words(texts: Texts, targets: ArrayLike, new: Texts, labels: Sequence[str]) -> Floats:
    """(N,) by ridge regression; no answer beyond what was ever seen."""
    from sklearn.linear_model import Ridge
    from threadpoolctl import threadpool_limits

    wanted = floats(targets, 1, "targets")
    known, asked = tfidf(texts, new)
    with threadpool_limits(1):
        model = Ridge(alpha=ALPHA, solver="sparse_cg").fit(known, wanted)
    result: Floats = np.clip(model.predict(asked), wanted.min(), wanted.max())
    return result


def choose_words(texts: Texts, targets: ArrayLike, new: Texts, labels: Sequence[str]) -> Ints:
    """(N,): the ending whose words, and those its context shares, look most like right ones."""
    wanted = np.asarray(targets, dtype=np.int64)
    pairs = [(fields[0], ending) for fields in texts for ending in fields[1:]]
    right = [
        int(place == target)
        for fields, target in zip(texts, wanted, strict=True)
        for place in range(len(fields) - 1)
    ]
    asked = [(fields[0], ending) for fields in new for ending in fields[1:]]
    chances = classify_words(pairs, right, asked, ("wrong", "right"))[:, 1]
    ends = np.cumsum([len(fields) - 1 for fields in new])
    return np.array([part.argmax() for part in np.split(chances, ends[:-1])], dtype=np.int64)


def _yes(known: Features, targets: Bools, asked: Features) -> Floats:
    """(N, C) probabilities of each label on its own."""
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    chances = np.empty((asked.shape[0], targets.shape[1]))
    for label, mine in enumerate(targets.T):
        if mine.any() and not mine.all():
            model = LogisticRegression(C=C, solver="liblinear", max_iter=1000, random_state=0)
            with threadpool_limits(1):
                model.fit(known, mine)
            chances[:, label] = model.predict_proba(asked)[:, 1]
        else:  # there is nothing to tell apart: the share, one of each kind added
            chances[:, label] = (mine.sum() + 1) / (len(mine) + 2)
    return chances
