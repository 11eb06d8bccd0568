"""Answers taken from a text: exact match and F1 by the rules of SQuAD 1.1, SQuAD 2.0 and CMRC 2018.

Each rule is a function (prediction, gold answers) -> (exact, F1), the better of the gold answers,
0 to 1; the official programs print a hundred times the mean. "" is the answer "there is none".
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from bertsmith.errors import unknown
from bertsmith.metrics.arrays import Floats, check_rows
from bertsmith.metrics.chinese_answers import HAN, cmrc

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
    # A gold answer of which nothing is left ("The") does not count as one.
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

    None is a question the model was not asked or did not return; it counts 0, as in SQuAD 1.1.
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
    # As the official programs compute it, to the last bit.
    if common == 0:
        return 0.0
    precision, recall = common / len(first), common / len(second)
    return 2 * precision * recall / (precision + recall)
