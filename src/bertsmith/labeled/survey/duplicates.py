"""Rows with the same texts: copies in a split, rows in two splits, texts with two labels."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from bertsmith.files.faults import shown
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
from bertsmith.labeled.survey.rows import RowPlace, folded, text_key

Kind = Literal["duplicate", "leak", "conflict"]
Row = tuple[str, int]  # the split and the number in it
Splitted = Mapping[str, Sequence[Example]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Twins:
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
        said = f"{self.second} = {self.first}: {self.text}"
        if self.labels is not None:
            said += f" ({self.labels[1]} here, {self.labels[0]} there)"
        return said

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        found: dict[str, Any] = {
            "exact": self.exact,
            "first": self.first.to_json(),
            "second": self.second.to_json(),
            "text": self.text,
        }
        return found if self.labels is None else {**found, "labels": list(self.labels)}


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
    found: list[Twins] = []
    for members in groups.values():
        group = _Group(splits, order)
        for row in members:
            found += group.add(row)
    return found


Said = dict[Hashable, Row]
"""The first row with each target."""


@dataclass(slots=True)
class _Group:
    """Rows with one folded text, in the order of the splits."""

    splits: Splitted
    order: list[str]
    first: dict[Hashable, Row] = field(default_factory=dict)
    """The first row of each split, and of each (split, texts)."""
    said: dict[Hashable, Said] = field(default_factory=dict)
    """By split, (split, texts), texts, and None for all."""

    def add(self, row: Row) -> Iterator[Twins]:
        """What this row repeats or contradicts of the rows before it."""
        split, number = row
        example = self.splits[split][number]
        texts, said = example.texts, _said(example.target)
        exact = _agreeing(self.said.get((split, texts)), said)
        near = _agreeing(self.said.get(split), said)
        if (other := exact or near) is not None:
            yield self._twins("duplicate", other, row, exact=exact is not None)
        for before in self.order[: self.order.index(split)]:
            exact, near = self.first.get((before, texts)), self.first.get(before)
            if (other := exact or near) is not None:
                yield self._twins("leak", other, row, exact=exact is not None)
        if said is not None:
            yield from self._conflict(row, texts, said)
        for place in (split, (split, texts)):
            self.first.setdefault(place, row)
            self.said.setdefault(place, {}).setdefault(said, row)

    def _conflict(self, row: Row, texts: tuple[str, ...], said: Hashable) -> Iterator[Twins]:
        same, all_ = (self.said.setdefault(place, {}) for place in (texts, None))
        known = same or all_
        if known and _agreeing(known, said) is None:
            yield self._twins("conflict", next(iter(known.values())), row, exact=known is same)
        same.setdefault(said, row)
        all_.setdefault(said, row)

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


def _said(target: Target | None) -> Hashable:
    """A target so that two of them can be compared, None for none; a frozenset holds answers."""
    if isinstance(target, LabelSet):
        return tuple(sorted(target.names))
    if isinstance(target, Tagged):
        return target.tags  # where units stand differs with the spaces
    if isinstance(target, Answers):
        return frozenset(folded(text) for text in _answers(target))
    return target


def _agreeing(known: Said | None, said: Hashable) -> Row | None:
    """The first row whose target does not contradict this one."""
    if not known:
        return None
    if said in known or not isinstance(said, frozenset):
        return known.get(said)
    # Several people answered each question: one answer in common is enough.
    alike = (row for other, row in known.items() if isinstance(other, frozenset) and other & said)
    return next(alike, None)


def _answers(target: Answers) -> tuple[str, ...]:
    return (*(text for text, _ in target.found), *target.unplaced)


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
