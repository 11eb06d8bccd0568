"""In which way entities are wrong: another type, other borders, both, missed or invented."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from bertsmith.metrics.entities import Span, spans

KINDS = ("right", "other type", "other borders", "other type and borders", "missed", "invented")


def entity_errors(
    targets: Sequence[Sequence[str]], predictions: Sequence[Sequence[str]]
) -> dict[str, int]:
    """Counts by kind of error; a predicted entity is paired with at most one gold entity."""
    total: Counter[str] = Counter()
    for wanted, given in zip(targets, predictions, strict=True):
        total.update(_compared(spans(wanted), spans(given)))
    return {kind: total[kind] for kind in KINDS}


def _compared(wanted: Sequence[Span], given: Sequence[Span]) -> Counter[str]:
    found: Counter[str] = Counter(right=len(set(wanted) & set(given)))
    open_wanted = [span for span in wanted if span not in set(given)]
    open_given = [span for span in given if span not in set(wanted)]
    for kind, alike in _LIKENESSES:
        for span in list(open_wanted):
            partner = next((other for other in open_given if alike(span, other)), None)
            if partner is not None:
                open_wanted.remove(span)
                open_given.remove(partner)
                found[kind] += 1
    found["missed"] += len(open_wanted)
    found["invented"] += len(open_given)
    return found


def _overlap(one: Span, other: Span) -> bool:
    return one[1] < other[2] and other[1] < one[2]


# The nearest likeness first: a span is paired with the one that differs least.
_LIKENESSES: tuple[tuple[str, Callable[[Span, Span], bool]], ...] = (
    ("other type", lambda one, other: one[1:] == other[1:]),
    ("other borders", lambda one, other: one[0] == other[0] and _overlap(one, other)),
    ("other type and borders", _overlap),
)
