"""Bags of words for labels and numbers: naive Bayes and ridge regression."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from bertsmith.metrics.arrays import Bools, Floats, Ints, classes_of, floats, marks
from bertsmith.metrics.baselines.baseline import Texts
from bertsmith.metrics.baselines.ridge import fitted
from bertsmith.metrics.baselines.word_table import Words, WordTable
from bertsmith.metrics.calibration import softmax
from bertsmith.metrics.multilabel import Decisions, decide, tune_thresholds

_FOLDS = 5
STRENGTHS = (0.1, 1.0, 10.0)


def classify_words(texts: Texts, targets: ArrayLike, new: Texts, labels: Sequence[str]) -> Floats:
    """(N, C) probabilities by multinomial naive Bayes on which words occur (Wang, Manning 2012)."""
    numbers = classes_of(targets, len(labels), "targets")
    words = Words(texts)
    known, asked = words.learned, words.table(new)
    scores = np.empty((len(new), len(labels)))
    for label in range(len(labels)):
        mine = (numbers == label).astype(np.float64)
        prior = np.log((mine.sum() + 1) / (len(mine) + len(labels)))
        scores[:, label] = prior + asked.sums(_log_shares(known.counts(mine)))
    return softmax(scores)


def multilabel_words(
    texts: Texts, targets: ArrayLike, new: Texts, labels: Sequence[str]
) -> Decisions:
    """A naive Bayes yes or no for each label; thresholds are tuned on a fifth held out."""
    wanted = marks(targets, "targets")
    words = Words(texts)
    known = words.learned
    held = np.arange(len(wanted)) % _FOLDS == _FOLDS - 1
    thresholds: float | Floats = 0.5
    if held.any():
        apart, rest = np.flatnonzero(held), np.flatnonzero(~held)
        trial = _yes(known.only(rest), wanted[rest], known.only(apart))
        thresholds = tune_thresholds(trial, wanted[apart])
    return decide(_yes(known, wanted, words.table(new)), thresholds)


def regress_words(texts: Texts, targets: ArrayLike, new: Texts, labels: Sequence[str]) -> Floats:
    """(N,) by ridge regression on weighted words; its strength is chosen on a fifth held out."""
    wanted = floats(targets, 1, "targets")
    words = Words(texts)
    known = words.learned
    apart = np.flatnonzero(np.arange(len(wanted)) % _FOLDS == _FOLDS - 1)
    strength = 1.0
    if apart.size:
        rest = np.setdiff1d(np.arange(len(wanted)), apart)
        errors = [
            ((fitted(known.only(rest), wanted[rest], each)(known.only(apart)) - wanted[apart]) ** 2)
            for each in STRENGTHS
        ]
        strength = STRENGTHS[int(np.argmin([error.mean() for error in errors]))]
    return fitted(known, wanted, strength)(words.table(new))


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


def _log_shares(counts: Floats) -> Floats:
    """The log share of each feature, one added to all."""
    result: Floats = np.log((counts + 1) / (counts.sum() + len(counts)))
    return result


def _yes(known: WordTable, targets: Bools, asked: WordTable) -> Floats:
    """(N, C) probabilities of each label on its own."""
    everything = known.counts()
    chances = np.empty((asked.shape[0], targets.shape[1]))
    for label in range(targets.shape[1]):
        mine = known.counts(targets[:, label].astype(np.float64))
        odds = _log_shares(mine) - _log_shares(everything - mine)
        prior = np.log((targets[:, label].sum() + 1) / ((~targets[:, label]).sum() + 1))
        chances[:, label] = 1 / (1 + np.exp(-np.clip(prior + asked.sums(odds), -500, 500)))
    return chances
