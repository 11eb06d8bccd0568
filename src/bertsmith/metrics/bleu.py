"""BLEU-4 of a set of texts (Papineni et al. 2002), as sacrebleu computes it.

English is divided by the rules of mteval-v13a. Where the reference is Chinese, every Chinese
character and sign is a token of its own ("zh" in sacrebleu). An order without a match counts half
a match, then a quarter and so on, as in mteval.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from bertsmith.metrics.arrays import Floats
from bertsmith.text.segment import is_chinese

ORDERS = 4
COUNTS = 2 * ORDERS + 2  # matches and n-grams of each order, then tokens written and wanted
ENTITIES = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))
# Signs of ASCII but for the apostrophe, comma, hyphen and full stop, which depend on neighbors.
RULES = (
    (re.compile(r"([ -&(-+/:-@\[-`{-~])"), r" \1 "),
    (re.compile(r"([^0-9])([.,])"), r"\1 \2 "),
    (re.compile(r"([.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)
# What sacrebleu divides in Chinese text besides ideographs: punctuation, full-width forms, symbols.
CHINESE_SIGNS = re.compile(
    "([\u2001-\u2a6d\u2e80-\u2fff\u3000-\u303f\u3100-\u312f\u31a0-\u31bf\u31c0-\u31ef"
    "\u3200-\u33ff\u3400-\u4db5\u4e00-\u9fbb\uf900-\ufa2d\ufa30-\ufa6a\ufa70-\ufad9"
    "\ufe10-\ufe1f\ufe30-\ufe4f\uff00-\uffef])"
)


def bleu_tokens(text: str, *, chinese: bool) -> list[str]:
    """The tokens of a text, which keep their case."""
    if chinese:
        line = CHINESE_SIGNS.sub(r" \1 ", text.strip())
    else:
        line = f" {text.rstrip()} ".replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
        for entity, sign in ENTITIES:
            line = line.replace(entity, sign)
    for rule, parted in RULES:
        line = rule.sub(parted, line)
    return line.split()


def bleu_counts(reference: str, written: str) -> list[float]:
    """The counts of one text, COUNTS of them, that add up over texts."""
    chinese = any(map(is_chinese, reference))
    wanted, given = (bleu_tokens(text, chinese=chinese) for text in (reference, written))
    matches, totals = [], []
    for size in range(1, ORDERS + 1):
        left, right = _grams(wanted, size), _grams(given, size)
        matches.append(float((left & right).total()))
        totals.append(float(right.total()))
    return [*matches, *totals, float(len(given)), float(len(wanted))]


def bleu(counts: Floats) -> float:
    """Counts (n, COUNTS) of some texts -> their BLEU, from 0 to 1."""
    sums = counts.sum(axis=0).tolist()
    matches, totals = sums[:ORDERS], sums[ORDERS : 2 * ORDERS]
    written, wanted = sums[2 * ORDERS :]
    if not any(matches) or not all(totals):
        return 0.0
    logs, half = 0.0, 1.0
    for found, total in zip(matches, totals, strict=True):
        if not found:
            half /= 2
        logs += math.log((found or half) / total)
    brevity = 1.0 if written >= wanted else math.exp(1 - wanted / written)
    return brevity * math.exp(logs / ORDERS)


def _grams(tokens: Sequence[str], size: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(tokens[at : at + size]) for at in range(len(tokens) - size + 1))
