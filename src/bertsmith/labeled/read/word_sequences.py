"""Sentences that come as words: their text, where each word stands in it, and their tags."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bertsmith.labeled.example import Tagged
from bertsmith.labeled.read.tag_schemes import BadTagError, to_bio
from bertsmith.labeled.read.targets import unknown_label
from bertsmith.labeled.spec import DataSpec

Units = tuple[tuple[int, int], ...]
Place = Callable[[int], tuple[int | str, int | None]]
"""From the number of a word to the column and the line of its tag."""


def joined(words: Sequence[str], joiner: str) -> tuple[str, Units]:
    """The text of words and the (start, end) of each."""
    units = []
    at = 0
    gap = len(joiner)
    for word in words:
        units.append((at, at + len(word)))
        at += len(word) + gap
    return joiner.join(words), tuple(units)


def tagged_words(units: Units, tags: Sequence[str], spec: DataSpec, place: Place) -> Tagged:
    """The target of a sentence; a fault names the word whose tag is wrong."""
    try:
        bio = to_bio(tags, spec.scheme or "bio")
    except BadTagError as fault:
        fault.column, fault.line = place(fault.index)
        raise
    if spec.labels is not None:
        for number, tag in enumerate(bio):
            kind = tag[2:] if tag[1:2] == "-" else tag
            if tag != "O" and kind not in spec.labels:
                column, line = place(number)
                raise unknown_label(kind, spec, column, line)
    return Tagged(units, bio)
