"""Answers by what the question asks for, and whether silence was right."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from bertsmith.evaluation.proof.rows import Rows
from bertsmith.labeled.example import Answers
from bertsmith.tasks.prediction import Answer

OTHER = "other"
# Longer forms first: the earliest match of the earliest alternative is what is asked for.
_ASKED = re.compile(
    r"\b(how (?:many|much|long|old|often|far)|how|who(?:se|m)?|what|when|where|which|why)\b"
    "|(为什么|為什麼|什么时候|什麼時候|什么|什麼|怎么样|怎麼樣|怎么|怎麼|怎样|怎樣"
    "|哪里|哪裡|哪儿|何时|何時|何处|何處|为何|為何|如何|多少|谁|誰|哪|几|幾|何)",
    re.IGNORECASE,
)


def asked_for(question: str) -> str:
    """The question word, in lower case."""
    found = _ASKED.search(question)
    return found.group(0).lower() if found else OTHER


def questions(rows: Rows) -> list[dict[str, Any]] | None:
    """Rows, F1 and exact match by question word, the commonest first."""
    if rows.task != "answer":
        return None
    words = np.array([asked_for(example.texts[0]) for example in rows.examples])
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


def silence(rows: Rows) -> dict[str, int] | None:
    """Questions with and without an answer against answers given and not; None if all have one."""
    if rows.task != "answer":
        return None
    has = [_has_answer(example.target) for example in rows.examples]
    spoke = [isinstance(p.value, Answer) and bool(p.value.text) for p in rows.predictions]
    if all(has) and all(spoke):
        return None
    pairs = list(zip(has, spoke, strict=True))
    return {
        "answered_with_answer": pairs.count((True, True)),
        "silent_with_answer": pairs.count((True, False)),
        "answered_without_answer": pairs.count((False, True)),
        "silent_without_answer": pairs.count((False, False)),
    }


def _has_answer(target: object) -> bool:
    return isinstance(target, Answers) and bool(target.found or target.unplaced)
