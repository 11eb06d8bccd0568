"""Figures of written texts against references: ROUGE, BLEU, chrF, exact match, distinct n-grams."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from bertsmith.metrics import bleu, chrf
from bertsmith.metrics.arrays import Floats, Ints, check_rows
from bertsmith.metrics.bleu import bleu_tokens
from bertsmith.metrics.metric import Metric
from bertsmith.metrics.rouge import rouge
from bertsmith.text.segment import is_chinese

ROUGES = ("rouge_1", "rouge_2", "rouge_l")
_BLEU = slice(len(ROUGES) + 1, len(ROUGES) + 1 + bleu.COUNTS)
_CHRF = slice(_BLEU.stop, _BLEU.stop + chrf.COUNTS)


def distinct(texts: Sequence[str], size: int) -> float:
    """Different n-grams per n-gram of all texts (Li et al. 2016); Chinese by characters."""
    seen: set[tuple[str, ...]] = set()
    total = 0
    for text in texts:
        tokens = bleu_tokens(text, chinese=any(map(is_chinese, text)))
        grams = [tuple(tokens[at : at + size]) for at in range(len(tokens) - size + 1)]
        seen.update(grams)
        total += len(grams)
    return len(seen) / total if total else 0.0


def _rows(references: Sequence[str], written: Sequence[str], labels: Sequence[str]) -> Floats:
    check_rows(references, written)
    return np.array(
        [
            [
                *rouge(reference, text),
                float(text.split() == reference.split()),
                *bleu.bleu_counts(reference, text),
                *chrf.chrf_counts(reference, text),
            ]
            for reference, text in zip(references, written, strict=True)
        ]
    )


def _figures(rows: Floats, labels: Sequence[str]) -> dict[str, float]:
    means = rows[:, : len(ROUGES) + 1].mean(axis=0).tolist()
    return {
        "rouge_l": means[2],
        "rouge_1": means[0],
        "rouge_2": means[1],
        "bleu": bleu.bleu(rows[:, _BLEU]),
        "chrf": chrf.chrf(rows[:, _CHRF]),
        "exact": means[3],
    }


def _drawn(rows: Floats, labels: Sequence[str]) -> Callable[[Ints], float]:
    main = rows[:, 2]
    return lambda drawn: float(main[drawn].mean())


WRITTEN = Metric("rouge_l", _rows, _figures, _drawn)
"""N references, N written texts -> the figures; ROUGE and exact match as means over texts."""
