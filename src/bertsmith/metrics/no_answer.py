"""When to say that a text holds no answer: the threshold with the best score on dev."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bertsmith.metrics.arrays import check_rows, floats


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """Answer where the score for "no answer" is at most `threshold`; `score` is the mean then."""

    threshold: float
    score: float


def tune_no_answer(
    answered: ArrayLike, empty: ArrayLike, against: ArrayLike, *, neutral: float = 0.0
) -> NoAnswer:
    """The threshold with the best mean score, exact over every cut between two questions.

    answered: (N,) what each question scores if its best span is given (exact or F1).
    empty:    (N,) what it scores if nothing is given (1 where there is no gold answer, else 0).
    against:  (N,) the model's score for "no answer", less that of its best span, say.
    A cut leaves room for many thresholds: `neutral` if it has room there, else the middle of the
    gap; in front of all and behind all, one unit away. Of equally good cuts the one nearest
    `neutral` wins. Worth tuning only on rows of both kinds.
    """
    given, silent = floats(answered, 1, "answered"), floats(empty, 1, "empty")
    nulls = floats(against, 1, "against")
    check_rows(given, nulls)
    check_rows(silent, nulls)
    order = np.argsort(nulls, kind="stable")
    ordered = nulls[order]
    gain = np.cumsum((given - silent)[order])
    means = (silent.sum() + np.concatenate([[0.0], gain])) / len(nulls)  # (N + 1,): k answered
    low = np.concatenate([[-np.inf], ordered])
    high = np.concatenate([ordered, [np.inf]])
    room = low < high  # a tie cannot be cut
    middle = (low + high) / 2
    middle = np.where(middle < high, middle, low)  # neighbors in the last bit
    middle[0], middle[-1] = ordered[0] - 1.0, ordered[-1] + 1.0
    thresholds = np.where((low <= neutral) & (neutral < high), neutral, middle)
    # Sums in another order differ in the last bits, and those must not decide.
    best = room & (means >= means[room].max() - 1e-12)
    chosen = int(np.where(best, np.abs(thresholds - neutral), np.inf).argmin())
    return NoAnswer(float(thresholds[chosen]), float(means[chosen]))
