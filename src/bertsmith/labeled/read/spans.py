"""Character spans: where a piece of text really stands, and the units and tags that spans make."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from bertsmith.files.faults import BadRowError, shown
from bertsmith.labeled.account import RowAccount
from bertsmith.labeled.example import Tagged
from bertsmith.text.segment import is_chinese

Span = tuple[int, int, str]  # start, end (exclusive), kind


def nearest(text: str, piece: str, start: int) -> int | None:
    """Where `piece` stands in the text: at `start`, else at the nearest place; None: nowhere."""
    if start >= 0 and text.startswith(piece, start):
        return start
    near = max(start, 0)
    before = text.rfind(piece, 0, near + len(piece))
    after = text.find(piece, near)
    if before < 0 or after < 0:
        return max(before, after) if max(before, after) >= 0 else None
    return before if near - before <= after - near else after


@lru_cache(maxsize=1 << 16)
def _kind(character: str) -> int:
    """0 for white space, 1 for a character that stands alone, 2 for a part of a word."""
    if character.isspace():
        return 0
    category = unicodedata.category(character)
    return 1 if category[0] in "PS" or is_chinese(character) else 2


def units_of(text: str, cuts: Sequence[int] = ()) -> tuple[tuple[int, int], ...]:
    """Words, and each ideograph and sign by itself: what a tokenizer never joins.

    A word is cut where a span begins or ends inside it.
    """
    borders = set(cuts)
    units: list[tuple[int, int]] = []
    start = -1  # of the word at hand
    for at, character in enumerate(text):
        kind = _kind(character)
        if start >= 0 and (kind != 2 or at in borders):
            units.append((start, at))
            start = -1
        if kind == 1:
            units.append((at, at + 1))
        elif kind == 2 and start < 0:
            start = at
    if start >= 0:
        units.append((start, len(text)))
    return tuple(units)


def tagged(text: str, spans: Sequence[Span]) -> Tagged:
    """A BIO tag for each unit of a text; the spans are checked and do not overlap."""
    units = units_of(text, [place for start, end, _ in spans for place in (start, end)])
    tags = ["O"] * len(units)
    at = 0
    for start, end, kind in sorted(spans):
        while at < len(units) and units[at][0] < start:
            at += 1
        letter = "B"
        while at < len(units) and units[at][1] <= end:
            tags[at] = f"{letter}-{kind}"
            letter = "I"
            at += 1
    return Tagged(units, tuple(tags))


class Marking:
    """The spans of one text on their way to tags.

    What can be put right is counted in the account: offsets that miss the span's own text, white
    space at its ends, spans inside a longer one. Everything else makes the row unusable.
    """

    def __init__(
        self, text: str, *, field: str, place: str, overlap: str | None, account: RowAccount
    ) -> None:
        self._text = text
        self._field = field
        self._place = place
        self._overlap = overlap or "longest"
        self._account = account
        self._spans: set[Span] = set()

    def add(self, span: Span, at: str, piece: str | None = None) -> None:
        """One span; `at` is where the file holds it, `piece` the text that it should have."""
        start, end, kind = span
        if piece is not None and self._text[max(start, 0) : max(end, 0)] != piece:
            place = nearest(self._text, piece, start) if piece else None
            if place is None:
                raise BadRowError(
                    f"{shown(piece)} does not occur in the text",
                    "write it as the text has it",
                    column=at,
                )
            start, end = place, place + len(piece)
        trimmed = self._trimmed(start, end, kind, at)
        if trimmed != span:
            self._account.note("repaired", self._place)
        self._spans.add(trimmed)

    def tagged(self) -> Tagged:
        """The tags that the spans make."""
        flat: list[Span] = []
        for span in sorted(self._spans, key=lambda span: (span[0], -span[1], span[2])):
            last = flat[-1] if flat else (0, 0, "")
            if span[0] >= last[1]:
                flat.append(span)
            elif span[1] <= last[1] and self._overlap == "longest" and span[:2] != last[:2]:
                self._account.note("nested", self._place)
            else:
                raise BadRowError(
                    f"{self._spelled(last)} and {self._spelled(span)} overlap",
                    "keep one of them: a word has one tag",
                    column=self._field,
                )
        return tagged(self._text, flat)

    def _trimmed(self, start: int, end: int, kind: str, at: str) -> Span:
        """The span without white space at its ends."""
        length = len(self._text)
        if not 0 <= start < end <= length:
            what = "is empty" if start == end else "does not lie inside the text"
            raise BadRowError(
                f"the span {start} to {end} ({shown(kind)}) {what}, which has {length} characters",
                "count characters from 0; the end is the first one after the span",
                column=at,
            )
        piece = self._text[start:end]
        left, right = len(piece) - len(piece.lstrip()), len(piece.rstrip())
        if left >= right:
            raise BadRowError(
                f"the span {start} to {end} ({shown(kind)}) holds white space only",
                "remove it, or mark the word that was meant",
                column=at,
            )
        return (start + left, start + right, kind)

    def _spelled(self, span: Span) -> str:
        return f"{shown(self._text[span[0] : span[1]])} ({span[2]}, {span[0]} to {span[1]})"
