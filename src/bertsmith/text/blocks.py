"""Consecutive groups of bounded size, for texts that are processed together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def groups(
    items: Iterable[T],
    most: int,
    *,
    size: Callable[[T], int] = lambda _: 0,
    most_size: int = 0,
) -> Iterator[list[T]]:
    """Groups of at most `most` items and, unless one item alone is larger, of `most_size` in all.

    No item is read before the group that it does not belong to has been yielded, except to find
    out that it is too large for it.
    """
    group: list[T] = []
    total = 0
    for item in items:
        own = size(item)
        if group and total + own > most_size:
            yield group
            group, total = [], 0
        group.append(item)
        total += own
        if len(group) == most:
            yield group
            group, total = [], 0
    if group:
        yield group
