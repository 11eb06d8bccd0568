"""ROUGE-1, ROUGE-2 and ROUGE-L: F1 of the n-grams, and of the longest common subsequence.

As in Lin 2004 and Google's rouge-score, without stemming: lowercase words of a-z and digits. Every
Chinese character is a token of its own; rouge-score drops them. Letters of other scripts are
dropped, as there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from bertsmith.text.segment import is_chinese

WORD = re.compile("[a-z0-9]+|[^\x00-\u33ff]")


def rouge_tokens(text: str) -> list[str]:
    """Words of a text, and its Chinese characters one by one."""
    found = WORD.findall(text.lower())
    return [token for token in found if token.isascii() or is_chinese(token)]


def rouge(reference: str, written: str) -> tuple[float, float, float]:
    """ROUGE-1, ROUGE-2 and ROUGE-L of one text, each from 0 to 1."""
    wanted, given = rouge_tokens(reference), rouge_tokens(written)
    overlaps = [_overlap(wanted, given, size) for size in (1, 2)]
    common = longest_common(wanted, given)
    return (*overlaps, _f1(common, len(wanted), len(given)))  # type: ignore[return-value]


def longest_common(first: Sequence[str], second: Sequence[str]) -> int:
    """The length of the longest common subsequence."""
    # One bit per token of `first`, all columns of the table at once (Hyyrö 2004).
    places: dict[str, int] = {}
    for at, token in enumerate(first):
        places[token] = places.get(token, 0) | 1 << at
    every = (1 << len(first)) - 1
    row = every
    for token in second:
        hit = row & places.get(token, 0)
        row = ((row + hit) | (row - hit)) & every
    return len(first) - row.bit_count()


def _overlap(wanted: Sequence[str], given: Sequence[str], size: int) -> float:
    grams = [
        Counter(tuple(side[at : at + size]) for at in range(len(side) - size + 1))
        for side in (wanted, given)
    ]
    common = sum((grams[0] & grams[1]).values())
    return _f1(common, grams[0].total(), grams[1].total())


def _f1(common: int, wanted: int, given: int) -> float:
    return 2 * common / (wanted + given) if common else 0.0
