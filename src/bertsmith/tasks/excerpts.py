"""Excerpts of long texts."""

from __future__ import annotations

LONGEST = 400  # characters of a field
TAIL = 80


def shortened(text: str, longest: int = LONGEST) -> str:
    """The beginning and the end of a long text."""
    if len(text) <= longest:
        return text
    tail = min(TAIL, longest // 4)
    head = longest - tail
    return f"{text[:head]}{_gap(len(text) - longest)}{text[len(text) - tail :]}"


def around(text: str, places: list[tuple[int, int]], longest: int = LONGEST) -> str:
    """The part of a long text around places in it; only the first if they are too far apart."""
    if len(text) <= longest:
        return text
    if not places:
        return shortened(text, longest)
    start, end = places[0]
    for first, last in places[1:]:
        if max(end, last) - min(start, first) <= longest:
            start, end = min(start, first), max(end, last)
    spare = max(0, longest - (end - start)) // 2
    start = max(0, min(start - spare, len(text) - longest))
    stop = min(len(text), start + max(longest, 1))
    before = _gap(start) if start else ""
    after = _gap(len(text) - stop) if stop < len(text) else ""
    return f"{before}{text[start:stop]}{after}".strip()


def _gap(characters: int) -> str:
    return f" […{characters:,} characters…] "
