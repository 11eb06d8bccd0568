"""The commonest tag of a word: the baseline of every tagger."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from bertsmith.metrics.baselines.baseline import Texts


def tag_words(
    texts: Texts, targets: Sequence[Sequence[str]], new: Texts, labels: Sequence[str]
) -> list[list[str]]:
    """Each unit's commonest tag in training; a unit never seen gets the commonest of all."""
    by_unit: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for units, tags in zip(texts, targets, strict=True):
        for unit, name in zip(units, tags, strict=True):
            by_unit[unit][name] += 1
    total: Counter[str] = sum(by_unit.values(), Counter())
    unseen = total.most_common(1)[0][0] if total else "O"
    usual = {unit: counts.most_common(1)[0][0] for unit, counts in by_unit.items()}
    return [[usual.get(unit, unseen) for unit in units] for units in new]
