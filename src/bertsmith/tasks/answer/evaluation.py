"""Evaluation of answers: worst errors, figures by question word, answerability."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from bertsmith.labeled.example import Answers, Example
from bertsmith.metrics.answers import answer_scores, rules_for
from bertsmith.metrics.arrays import Bools, Floats
from bertsmith.tasks.excerpts import shortened
from bertsmith.tasks.prediction import PredictedAnswer, Prediction
from bertsmith.tasks.task import SURE, ScoredRows, Task

NO_ANSWER = "(no answer)"
GOLDS = 3
OTHER = "other"
# Longer forms first: the earliest match of the earliest alternative counts.
_WORDS = re.compile(
    r"\b(how (?:many|much|long|old|often|far)|how|who(?:se|m)?|what|when|where|which|why)\b"
    "|(为什么|為什麼|什么时候|什麼時候|什么|什麼|怎么样|怎麼樣|怎么|怎麼|怎样|怎樣"
    "|哪里|哪裡|哪儿|何时|何時|何处|何處|为何|為何|如何|多少|谁|誰|哪|几|幾|何)",
    re.IGNORECASE,
)


def question_word(question: str) -> str:
    """The question word, in lower case."""
    match = _WORDS.search(question)
    return match.group(0).lower() if match else OTHER


def right(rows: ScoredRows) -> Bools:
    """(N,) exact match."""
    exact: Bools = rows.table[:, 1] == 1.0
    return exact


def error_weight(rows: ScoredRows) -> Floats:
    """(N,) confidence times the missing share of F1."""
    confidence = np.maximum(np.nan_to_num(rows.confidence), SURE)
    return np.where(~right(rows), (1 - rows.table[:, 0]) * confidence, 0.0)


def row_score(truth: Any, predicted: Any) -> Floats:
    """(N,) F1."""
    scores: Floats = answer_scores(truth, predicted, rules_for(truth))[:, 1]
    return scores


def sides(example: Example, prediction: Prediction, task: Task) -> tuple[str, str]:
    """Gold answers and the predicted one."""
    target, value = example.target, prediction.value
    given = shortened(value.text, 120) if isinstance(value, PredictedAnswer) else ""
    if not isinstance(target, Answers):
        return NO_ANSWER, given or NO_ANSWER
    golds = dict.fromkeys([*(text for text, _ in target.placed), *target.unplaced])
    wanted = " / ".join(shortened(gold, 120) for gold in list(golds)[:GOLDS])
    return wanted or NO_ANSWER, given or NO_ANSWER


def sections(rows: ScoredRows) -> dict[str, Any]:
    """Figures by question word, and answered against answerable questions."""
    return {"questions": by_question_word(rows), "answerability": answerability(rows)}


def by_question_word(rows: ScoredRows) -> list[dict[str, Any]]:
    """Rows, F1 and exact match by question word, the most frequent first."""
    words = np.array([question_word(example.texts[0]) for example in rows.examples])
    names, counts = np.unique(words, return_counts=True)
    return [
        {
            "word": str(names[n]),
            "rows": int(counts[n]),
            "f1": rows.table[words == names[n], 0].mean(),
            "exact": rows.table[words == names[n], 1].mean(),
        }
        for n in np.argsort(-counts, kind="stable")
    ]


def answerability(rows: ScoredRows) -> dict[str, int] | None:
    """Counts of (answerable, answered); None if all questions are both."""
    has = [_has_answer(example.target) for example in rows.examples]
    values = [one.value for one in rows.predictions]
    answered = [isinstance(value, PredictedAnswer) and bool(value.text) for value in values]
    if all(has) and all(answered):
        return None
    pairs = list(zip(has, answered, strict=True))
    return {
        "answered_with_answer": pairs.count((True, True)),
        "silent_with_answer": pairs.count((True, False)),
        "answered_without_answer": pairs.count((False, True)),
        "silent_without_answer": pairs.count((False, False)),
    }


def _has_answer(target: object) -> bool:
    return isinstance(target, Answers) and bool(target.placed or target.unplaced)
