"""A question bank: the answer of the nearest question, or none below a tuned threshold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertsmith.errors import ConfigError, InputFileError
from bertsmith.labeled.spec import DataSpec
from bertsmith.labeled.texts import read_text_rows
from bertsmith.search.store import BankRecord, Hit, Matrix

YES = {"1", "1.0", "true", "yes", "same"}
NO = {"0", "0.0", "false", "no", "different"}
LEAST_PAIRS = 10
PAIR = DataSpec(text=(1,), header=False)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a question bank says to a question; `answer` is None below the threshold."""

    answer: str | None
    similarity: float
    question: str
    """The nearest question of the bank."""
    id: int


@dataclass(frozen=True, slots=True)
class QuestionPairs:
    """Pairs of questions (n), and whether they ask the same."""

    first: list[str]
    second: list[str]
    same: NDArray[np.bool_]
    source: str


def reply_of(hits: Sequence[Hit], bank: BankRecord) -> Reply:
    """The answer by the best hit."""
    best = hits[0]
    known = bank.threshold is None or best.similarity >= bank.threshold
    answer = best.meta.get(bank.answers, "") if known else None
    return Reply(answer, best.similarity, best.text, best.id)


def read_pairs(path: Path) -> QuestionPairs:
    """`question<TAB>question<TAB>1 or 0` per line, also .csv or .jsonl of that order, no header."""
    first, second, same = [], [], []
    for number, (text, others) in enumerate(read_text_rows(path, PAIR), start=1):
        cells = list(others.values())
        label = cells[1].strip().lower() if len(cells) == 2 else ""
        if label not in YES | NO:
            if number == 1 and len(cells) == 2:
                continue  # a header
            raise InputFileError(
                f"{path}, row {number}: a pair is question, question and 1 (the same) or 0, not "
                f"{len(cells) + 1} columns{f' with {cells[1]!r}' if len(cells) == 2 else ''}; "
                "correct the row"
            )
        first.append(text)
        second.append(cells[0])
        same.append(label in YES)
    flags = np.array(same, dtype=bool)
    if len(flags) < LEAST_PAIRS or flags.all() or not flags.any():
        raise InputFileError(
            f"{path} has {int(flags.sum()):,} pairs that ask the same and "
            f"{int((~flags).sum()):,} that do not; a threshold needs both, and at least "
            f"{LEAST_PAIRS} pairs"
        )
    return QuestionPairs(first, second, flags, str(path))


def tuned(bank: BankRecord, pairs: QuestionPairs, similarities: Matrix) -> BankRecord:
    """The bank with the threshold of the best F1 on pairs whose similarities (n,) are given."""
    threshold, f1 = best_threshold(similarities.astype(np.float64), pairs.same)
    return bank.model_copy(
        update={
            "threshold": threshold,
            "f1": round(f1, 4),
            "pairs": len(pairs.same),
            "pairs_file": pairs.source,
        }
    )


def best_threshold(scores: NDArray[np.float64], same: NDArray[np.bool_]) -> tuple[float, float]:
    """The threshold with the best F1 of "the same", halfway between two scores; and that F1."""
    if not np.isfinite(scores).all():
        raise ConfigError("a similarity of the pairs is not finite")
    order = np.argsort(-scores, kind="stable")
    ranked, hits = scores[order], np.cumsum(same[order])
    counts = np.arange(1, len(ranked) + 1)
    f1 = 2 * hits / (counts + same.sum())
    last_of_tie = np.append(ranked[1:] != ranked[:-1], True)
    best = int(np.argmax(np.where(last_of_tie, f1, -1)))
    lower = ranked[best + 1] if best + 1 < len(ranked) else ranked[best]
    return float((ranked[best] + lower) / 2), float(f1[best])
