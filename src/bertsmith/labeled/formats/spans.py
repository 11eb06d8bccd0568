"""Texts with marked spans: lists of them in several dialects, and CLUENER as published."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, ItemsView, Sequence
from functools import lru_cache

from bertsmith.files.faults import BadRowError
from bertsmith.files.strict_json import type_name, wrong_type
from bertsmith.labeled.example import Tagged
from bertsmith.labeled.formats.objects import (
    Build,
    Parts,
    Row,
    text_of,
    value_of,
)
from bertsmith.labeled.read.reject import RowAccount
from bertsmith.labeled.read.targets import checked
from bertsmith.labeled.spec import DataSpec
from bertsmith.text.segment import is_chinese
from bertsmith.wording import shown

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


STARTS = ("start", "start_offset", "start_idx", "begin", "from", "offset_start")
ENDS = ("end", "end_offset", "end_idx", "to", "offset_end")
KINDS = ("label", "type", "entity_group", "kind", "tag", "entity_type", "category")
PIECES = ("text", "entity", "word", "mention", "value")
SHAPE = '{"name": {"words": [[start, last]]}}'  # of CLUENER

Mark = Callable[[object, str, DataSpec, Marking], Tagged]  # what a field holds, its name


def spans_builder(source: str, spec: DataSpec, account: RowAccount) -> Build:
    """Builds the examples of a file of texts with spans."""
    return _builder(source, spec, account, _mark)


def cluener_builder(source: str, spec: DataSpec, account: RowAccount) -> Build:
    """Builds the examples of CLUENER, whose second number is that of the last character."""
    return _builder(source, spec, account, _mark_cluener)


def _builder(source: str, spec: DataSpec, account: RowAccount, mark: Mark) -> Build:
    text_field = str((spec.text or ("text",))[0])
    field = str(spec.label[0]) if spec.label else None

    def build(line: int, row: Row) -> Parts:
        text = text_of(row, text_field, spec)
        target = None
        if field is not None:
            marking = Marking(
                text, field=field, place=f"line {line}", overlap=spec.overlap, account=account
            )
            target = mark(value_of(row, field), field, spec, marking)
        return (text,), target, {}, ()

    return build


def _mark(values: object, field: str, spec: DataSpec, marking: Marking) -> Tagged:
    if not isinstance(values, list):
        advice = "write [[start, end, kind], ...], or [] for none"
        raise wrong_type(values, "a list of spans", advice, field)
    past = int(spec.span_end == "inclusive")
    for number, value in enumerate(values):
        at = f"{field}[{number}]"
        start, end, kind, piece = _parts(value, at)
        checked(kind, spec, at)
        marking.add((start, end + past, kind), at, piece)
    return marking.tagged()


def _parts(value: object, at: str) -> tuple[int, int, str, str | None]:
    """Start, end, kind and, if the file says so, the text of a span."""
    if isinstance(value, dict):
        parts: Sequence[object] = [_first(value, names, at) for names in (STARTS, ENDS, KINDS)]
        piece = next((value[name] for name in PIECES if type(value.get(name)) is str), None)
    elif isinstance(value, list) and len(value) == 3:
        parts, piece = value, None
    else:
        advice = 'write [0, 5, "PER"] or {"start": 0, "end": 5, "label": "PER"}'
        raise wrong_type(value, "[start, end, kind]", advice, at)
    start, end, kind = parts
    if type(start) is not int or type(end) is not int:
        raise BadRowError(
            f"start and end are {type_name(start)} and {type_name(end)}",
            "write whole numbers, counted in characters",
            column=at,
        )
    if not isinstance(kind, str):
        raise BadRowError(f"the kind is {type_name(kind)}", "write a string", column=at)
    return start, end, str(kind), piece


def _first(value: dict[str, object], names: Sequence[str], at: str) -> object:
    for name in names:
        if name in value:
            return value[name]
    raise BadRowError(
        f"the key {shown(names[0])} is missing from the span",
        'write {"start": 0, "end": 5, "label": "PER"}',
        column=at,
    )


def _mark_cluener(value: object, field: str, spec: DataSpec, marking: Marking) -> Tagged:
    past = int(spec.span_end != "exclusive")
    for kind, words in _members(value, field):
        checked(kind, spec, f"{field}.{kind}")
        for word, places in _members(words, f"{field}.{kind}"):
            at = f"{field}.{kind}.{word}"
            if not isinstance(places, list):
                raise wrong_type(places, "a list", f"write {SHAPE}", at)
            for pair in places:
                start, last = _pair(pair, at)
                marking.add((start, last + past, kind), at, word)
    return marking.tagged()


def _members(value: object, at: str) -> ItemsView[str, object]:
    if not isinstance(value, dict):
        raise wrong_type(value, "an object", f"write {SHAPE}", at)
    return value.items()


def _pair(value: object, at: str) -> tuple[int, int]:
    if isinstance(value, list) and len(value) == 2 and all(type(n) is int for n in value):
        return value[0], value[1]
    raise BadRowError(
        f"{shown(value)} is no place", "write [start, last], counted from 0", column=at
    )
