"""Span answers: exact match and F1 by the rules of SQuAD 1.1, SQuAD 2.0 and CMRC 2018.

Each rule is a function (prediction, gold answers) -> (exact, F1), the best over gold answers, 0 to
1; the official programs print a hundred times the mean. "" is the answer "there is none".
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from bertsmith.errors import unknown
from bertsmith.metrics.arrays import Floats, check_rows, floats
from bertsmith.metrics.chinese_answers import HAN, cmrc, overlap_f1
from bertsmith.metrics.metric import Metric

Rule = Callable[[str, Sequence[str]], tuple[float, float]]

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalized(text: str) -> str:
    """Lower case, no ASCII punctuation, no English articles, single spaces: what SQuAD compares."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_WITHOUT_PUNCTUATION)).split())


def squad1(prediction: str, golds: Sequence[str]) -> tuple[float, float]:
    """SQuAD 1.1 (Rajpurkar et al. 2016): every question has an answer."""
    given = normalized(prediction)
    wanted = [normalized(gold) for gold in golds]
    exact = max((float(given == gold) for gold in wanted), default=0.0)
    return exact, max((_overlap(given, gold) for gold in wanted), default=0.0)


def squad2(prediction: str, golds: Sequence[str]) -> tuple[float, float]:
    """SQuAD 2.0 (Rajpurkar et al. 2018): without a gold answer only an empty one is right."""
    given = normalized(prediction)
    # A gold answer that normalization empties ("The") does not count as one.
    wanted = [gold for gold in map(normalized, golds) if gold] or [""]
    exact = max(float(given == gold) for gold in wanted)
    # An answer of punctuation only is one of no words: it agrees with "no answer" in both figures.
    if not given:
        return exact, exact
    return exact, max(_overlap(given, gold) for gold in wanted)


RULES: dict[str, Rule] = {"squad1": squad1, "squad2": squad2, "cmrc": cmrc}


def rules_for(targets: Sequence[Sequence[str]]) -> str:
    """The rules that fit these gold answers.

    cmrc if more of them hold a Han character than not, else squad2 if a question has no answer,
    else squad1.
    """
    golds = [gold for answers in targets for gold in answers]
    if 2 * sum(bool(HAN.search(gold)) for gold in golds) > len(golds):
        return "cmrc"
    return "squad1" if all(targets) else "squad2"


def answer_scores(
    targets: Sequence[Sequence[str]], predictions: Sequence[str | None], rules: str
) -> Floats:
    """Gold answers and predictions of N questions -> (N, 2): exact and F1.

    A missing prediction, None, counts 0, as in SQuAD 1.1.
    """
    check_rows(targets, predictions)
    if rules not in RULES:
        raise unknown("set of answer rules", rules, RULES)
    rule = RULES[rules]
    return np.array(
        [
            (0.0, 0.0) if given is None else rule(given, golds)
            for golds, given in zip(targets, predictions, strict=True)
        ]
    )


def _overlap(given: str, gold: str) -> float:
    """F1 of the words both have, each as often as both have it."""
    first, second = given.split(), gold.split()
    common = sum((Counter(first) & Counter(second)).values())
    return overlap_f1(common, len(first), len(second))


def tune_no_answer(
    answered: ArrayLike, empty: ArrayLike, against: ArrayLike, *, neutral: float = 0.0
) -> float:
    """The no-answer threshold with the best mean score, exact over every cut between two questions.

    answered: (N,) the score of each question if its best span is predicted (exact or F1).
    empty:    (N,) its score if no answer is predicted (1 where there is no gold answer, else 0).
    against:  (N,) the model's score for "no answer", minus that of its best span.
    A question is answered where `against` is at most the threshold. A cut allows a range of
    thresholds: `neutral` if it is in that range, else the middle; below all and above all, one unit
    away. Of equally good cuts the one nearest `neutral` wins.
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
    return float(thresholds[chosen])


def _rows(
    targets: Sequence[Sequence[str]], predictions: Sequence[str | None], labels: Sequence[str]
) -> Floats:
    """Gold answers and predictions of N questions -> (N, 3): F1, exact, answerable or not."""
    scores = answer_scores(targets, predictions, labels[0] if labels else rules_for(targets))
    return np.column_stack([scores[:, 1], scores[:, 0], [bool(golds) for golds in targets]])


def _figures(rows: Floats, labels: Sequence[str]) -> dict[str, float]:
    f1, exact, has = rows[:, 0], rows[:, 1], rows[:, 2] > 0
    figures = {"f1": float(f1.mean()), "exact": float(exact.mean())}
    if has.any() and not has.all():
        for name, part in (("answerable", has), ("unanswerable", ~has)):
            figures[f"f1_{name}"] = float(f1[part].mean())
            figures[f"exact_{name}"] = float(exact[part].mean())
    return figures


ANSWERS = Metric("f1", _rows, _figures)
