"""Rows with the same texts: copies in a split, rows in two splits, texts with two labels."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import PurePath
from typing import Any, Literal

from bertsmith.labeled.example import (
    Answers,
    ChoiceIndex,
    Example,
    Label,
    LabelSet,
    ScoreTarget,
    Tagged,
    Target,
)
from bertsmith.text.segment import CHINESE
from bertsmith.wording import shown


class SurveyFinding:
    """What the classes of findings, all of them dataclasses, have in common."""

    __slots__ = ()

    def to_json(self) -> dict[str, Any]:
        """Plain values, what is None left out."""

        def filled(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            return {name: value for name, value in pairs if value is not None and name != "kind"}

        return asdict(self, dict_factory=filled)  # type: ignore[call-overload, no-any-return]


@dataclass(frozen=True, slots=True)
class RowPlace:
    """A row by split, file and line; `id` where the file names its rows."""

    split: str
    file: str
    line: int
    id: str | None = None

    @classmethod
    def of(cls, split: str, example: Example) -> RowPlace:
        """The place of an example."""
        own = example.id if example.id != str(example.line) else None
        return cls(split, example.source, example.line, own)

    def __str__(self) -> str:
        named = "" if self.id is None else f", id {self.id}"
        return f"{PurePath(self.file).name}, line {self.line}{named}"


KEY_BYTES = 16
INVISIBLE = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]")  # soft hyphen, zero width
# Kana and East Asian signs, too: a space next to any of these is a matter of taste.
WIDE = "".join(f"{chr(low)}-{chr(high)}" for low, high in ((0x3001, 0x30FF), *CHINESE))
NEXT_TO_WIDE = re.compile(f"(?<=[{WIDE}]) | (?=[{WIDE}])")


def folded(text: str) -> str:
    """A text without differences of case, width (NFKC), white space and invisible signs."""
    if text.isascii():
        return " ".join(text.lower().split())
    # Folding may undo the normal form (and the other way round), so that comes twice.
    plain = unicodedata.normalize("NFKC", INVISIBLE.sub("", text)).casefold()
    plain = " ".join(unicodedata.normalize("NFKC", plain).split())
    return NEXT_TO_WIDE.sub("", plain)


def text_key(texts: Sequence[str]) -> bytes:
    """Equal for rows whose texts are the same when folded; one field never runs into the next."""
    digest = hashlib.blake2b(digest_size=KEY_BYTES)
    for text in texts:
        piece = folded(text).encode("utf-8", "surrogatepass")
        digest.update(len(piece).to_bytes(8, "little"))
        digest.update(piece)
    return digest.digest()


Kind = Literal["duplicate", "leak", "conflict"]
Row = tuple[str, int]  # the split and the number in it
Splitted = Mapping[str, Sequence[Example]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Twins(SurveyFinding):
    """Two rows with the same texts; `exact`: letter for letter, else but for case, space, width.

    duplicate: `second` repeats `first` of the same split, label and all. leak: `second` stands in a
    later split than `first`. conflict: the two have different labels.
    """

    kind: Kind
    exact: bool
    first: RowPlace
    second: RowPlace
    text: str
    labels: tuple[str, str] | None = None

    def __str__(self) -> str:
        line = f"{self.second} = {self.first}: {self.text}"
        if self.labels is not None:
            line += f" ({self.labels[1]} here, {self.labels[0]} there)"
        return line


def find_twins(splits: Splitted) -> list[Twins]:
    """All pairs, each row with the first one that it repeats; splits in the order they are given.

    What is held of a row is 16 bytes and its number.
    """
    order = list(splits)
    seen: dict[bytes, Row] = {}
    groups: dict[bytes, list[Row]] = {}
    for split, rows in splits.items():
        for number, example in enumerate(rows):
            key = text_key(example.texts)
            first = seen.setdefault(key, (split, number))
            if first != (split, number):
                groups.setdefault(key, [first]).append((split, number))
    twins: list[Twins] = []
    for members in groups.values():
        group = _Group(splits, order)
        for row in members:
            twins += group.add(row)
    return twins


FirstRows = dict[Hashable, Row]
"""The first row with each target."""


@dataclass(slots=True)
class _Group:
    """Rows with one folded text, in the order of the splits."""

    splits: Splitted
    order: list[str]
    first: dict[Hashable, Row] = field(default_factory=dict)
    """The first row of each split, and of each (split, texts)."""
    targets: dict[Hashable, FirstRows] = field(default_factory=dict)
    """By split, (split, texts), texts, and None for all."""

    def add(self, row: Row) -> Iterator[Twins]:
        """What this row repeats or contradicts of the rows before it."""
        split, number = row
        example = self.splits[split][number]
        texts, target = example.texts, _comparable(example.target)
        exact = _agreeing(self.targets.get((split, texts)), target)
        near = _agreeing(self.targets.get(split), target)
        if (other := exact or near) is not None:
            yield self._twins("duplicate", other, row, exact=exact is not None)
        for before in self.order[: self.order.index(split)]:
            exact, near = self.first.get((before, texts)), self.first.get(before)
            if (other := exact or near) is not None:
                yield self._twins("leak", other, row, exact=exact is not None)
        if target is not None:
            yield from self._conflict(row, texts, target)
        for place in (split, (split, texts)):
            self.first.setdefault(place, row)
            self.targets.setdefault(place, {}).setdefault(target, row)

    def _conflict(self, row: Row, texts: tuple[str, ...], target: Hashable) -> Iterator[Twins]:
        same, all_ = (self.targets.setdefault(place, {}) for place in (texts, None))
        known = same or all_
        if known and _agreeing(known, target) is None:
            yield self._twins("conflict", next(iter(known.values())), row, exact=known is same)
        same.setdefault(target, row)
        all_.setdefault(target, row)

    def _twins(self, kind: Kind, first: Row, second: Row, *, exact: bool) -> Twins:
        one, two = (self.splits[split][number] for split, number in (first, second))
        labels = None
        if kind == "conflict":
            labels = (_spelled(one.target), _spelled(two.target))
        return Twins(
            kind=kind,
            exact=exact,
            first=RowPlace.of(first[0], one),
            second=RowPlace.of(second[0], two),
            text=shown(" | ".join(two.texts)),
            labels=labels,
        )


def _comparable(target: Target | None) -> Hashable:
    """A target so that two of them can be compared, None for none; a frozenset holds answers."""
    if isinstance(target, LabelSet):
        return tuple(sorted(target.names))
    if isinstance(target, Tagged):
        return target.tags  # where units stand differs with the spaces
    if isinstance(target, Answers):
        return frozenset(folded(text) for text in _answers(target))
    return target


def _agreeing(known: FirstRows | None, target: Hashable) -> Row | None:
    """The first row whose target does not contradict this one."""
    if not known:
        return None
    if target in known or not isinstance(target, frozenset):
        return known.get(target)
    # Several people answered each question: one answer in common is enough.
    alike = (row for other, row in known.items() if isinstance(other, frozenset) and other & target)
    return next(alike, None)


def _answers(target: Answers) -> tuple[str, ...]:
    return (*(text for text, _ in target.placed), *target.unplaced)


def _spelled(target: Target | None) -> str:
    """A target as a line of a survey shows it."""
    if isinstance(target, Label):
        return shown(target.name)
    if isinstance(target, LabelSet):
        return ", ".join(shown(name) for name in target.names) or "no label"
    if isinstance(target, ScoreTarget):
        return f"{target.value:g}"
    if isinstance(target, ChoiceIndex):
        return f"choice {target.index}"
    if isinstance(target, Answers):
        return next((shown(text) for text in _answers(target)), "no answer")
    if isinstance(target, Tagged):
        kinds = [tag for tag in target.tags if tag != "O"]
        return (", ".join(kinds[:5]) + (", ..." if len(kinds) > 5 else "")) or "no tag"
    return "no label"
