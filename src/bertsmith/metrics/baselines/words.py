"""Linear models on TF-IDF features: logistic regression for labels, ridge regression for numbers.

Both are scikit-learn's. Their settings were chosen once, on training rows: C by cross-validation on
BBC, SST-2, ChnSentiCorp, LCQMC and AFQMC, alpha on a fifth of STS-B. They are fitted with one
thread, so that sums are taken in one order and runs repeat exactly.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from bertsmith.metrics.arrays import Bools, Floats, Ints, classes_of, floats, marks
from bertsmith.metrics.baselines.majority import Texts
from bertsmith.metrics.baselines.tfidf import Features, tfidf
from bertsmith.metrics.multilabel import Decisions, decide, tune_thresholds

_FOLDS = 5
C = 3.0  # of 1, 3, 10: the inverse strength of the L2 penalty
ALPHA = 1.0  # of 0.3, 1, 3: the L2 penalty of ridge regression


def classify_words(texts: Texts, targets: ArrayLike, new: Texts, labels: Sequence[str]) -> Floats:
    """(N, C) probabilities by logistic regression, one-vs-rest for more than two classes."""
    numbers = classes_of(targets, len(labels), "targets")
    train_features, new_features = tfidf(texts, new)
    one_hot = numbers[:, None] == np.arange(len(labels))
    if len(labels) == 2:
        second = _label_probabilities(train_features, one_hot[:, 1:], new_features)
        return np.hstack([1 - second, second])
    probabilities = _label_probabilities(train_features, one_hot, new_features)
    result: Floats = probabilities / probabilities.sum(axis=1, keepdims=True)
    return result


def multilabel_words(
    texts: Texts, targets: ArrayLike, new: Texts, labels: Sequence[str]
) -> Decisions:
    """One logistic regression per label; thresholds are tuned on a held-out fifth.

    Each is fitted again on all rows: without that, micro F1 on CLUENER's entity types is .003 to
    .013 lower, and a weak baseline flatters the model.
    """
    present = marks(targets, "targets")
    train_features, new_features = tfidf(texts, new)
    held_out = np.arange(len(present)) % _FOLDS == _FOLDS - 1
    thresholds: float | Floats = 0.5
    if held_out.any():
        probabilities = _label_probabilities(
            train_features[~held_out], present[~held_out], train_features[held_out]
        )
        thresholds = tune_thresholds(probabilities, present[held_out])
    return decide(_label_probabilities(train_features, present, new_features), thresholds)


def regress_words(texts: Texts, targets: ArrayLike, new: Texts, labels: Sequence[str]) -> Floats:
    """(N,) by ridge regression, clipped to the range of the training targets."""
    from sklearn.linear_model import Ridge
    from threadpoolctl import threadpool_limits

    values = floats(targets, 1, "targets")
    train_features, new_features = tfidf(texts, new)
    with threadpool_limits(1):
        model = Ridge(alpha=ALPHA, solver="sparse_cg").fit(train_features, values)
    result: Floats = np.clip(model.predict(new_features), values.min(), values.max())
    return result


def choose_words(texts: Texts, targets: ArrayLike, new: Texts, labels: Sequence[str]) -> Ints:
    """(N,): the most probable ending, by logistic regression on (context, ending) pairs."""
    right_index = np.asarray(targets, dtype=np.int64)
    right = [
        int(index == target)
        for fields, target in zip(texts, right_index, strict=True)
        for index in range(len(fields) - 1)
    ]
    probabilities = classify_words(_pairs(texts), right, _pairs(new), ("wrong", "right"))[:, 1]
    ends = np.cumsum([len(fields) - 1 for fields in new])
    return np.array([part.argmax() for part in np.split(probabilities, ends[:-1])], dtype=np.int64)


def _pairs(texts: Texts) -> list[tuple[str, str]]:
    """(context, ending, ending, ...) rows -> one (context, ending) per ending."""
    return [(fields[0], ending) for fields in texts for ending in fields[1:]]


def _label_probabilities(train: Features, present: Bools, new: Features) -> Floats:
    """Binary logistic regressions fitted on (M, F) features with (M, C) labels -> (N, C)."""
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    probabilities = np.empty((new.shape[0], present.shape[1]))
    for label, column in enumerate(present.T):
        if column.any() and not column.all():
            model = LogisticRegression(C=C, solver="liblinear", max_iter=1000, random_state=0)
            with threadpool_limits(1):
                model.fit(train, column)
            probabilities[:, label] = model.predict_proba(new)[:, 1]
        else:  # one class only: its share with add-one smoothing
            probabilities[:, label] = (column.sum() + 1) / (len(column) + 2)
    return probabilities
