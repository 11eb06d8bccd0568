"""chrF2 of a set of texts (Popović 2015), as sacrebleu computes it: character n-grams up to 6.

White space does not count, so English and Chinese are treated alike.
"""

from __future__ import annotations

from collections import Counter

from bertsmith.metrics.arrays import Floats

ORDERS = 6
COUNTS = 3 * ORDERS  # n-grams written, wanted and matched, of each order
BETA = 2.0  # recall counts so much more than precision


def chrf_counts(reference: str, written: str) -> list[float]:
    """The counts of one text, COUNTS of them, that add up over texts."""
    wanted, given = ("".join(text.split()) for text in (reference, written))
    counts: list[float] = []
    for size in range(1, ORDERS + 1):
        left, right = _grams(wanted, size), _grams(given, size)
        # A text without a reference n-gram of this order counts as none written, too.
        written_here = float(right.total()) if left else 0.0
        counts += [written_here, float(left.total()), float((left & right).total())]
    return counts


def chrf(counts: Floats) -> float:
    """Counts (n, COUNTS) of some texts -> their chrF, from 0 to 1."""
    sums = counts.sum(axis=0).reshape(ORDERS, 3)
    usable = sums[(sums[:, 0] > 0) & (sums[:, 1] > 0)]
    if not len(usable):
        return 0.0
    precision = float((usable[:, 2] / usable[:, 0]).mean())
    recall = float((usable[:, 2] / usable[:, 1]).mean())
    if not precision + recall:
        return 0.0
    return (1 + BETA**2) * precision * recall / (BETA**2 * precision + recall)


def _grams(text: str, size: int) -> Counter[str]:
    return Counter(text[at : at + size] for at in range(len(text) - size + 1))
