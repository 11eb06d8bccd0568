"""One row of a data set and its target: the types that every reader gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Label:
    """One of several classes, spelled exactly as the file spells it: "NA", "01", " x "."""

    name: str


@dataclass(frozen=True, slots=True)
class LabelSet:
    """Any number of classes at once; none is an answer, too."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ScoreTarget:
    """A number to predict."""

    value: float


@dataclass(frozen=True, slots=True)
class Tagged:
    """A BIO tag for each unit of texts[0], whatever scheme the file is written in.

    `units` are the (start, end) of words or characters, in order and without overlap.
    """

    units: tuple[tuple[int, int], ...]
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answers:
    """Where the answers of texts[0], the question, stand in texts[1]; none: it has no answer.

    `placed` holds (text, start). `unplaced` are accepted answers that the context does not contain:
    no training signal, but an evaluation by text counts them.
    """

    placed: tuple[tuple[str, int], ...]
    unplaced: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChoiceIndex:
    """Which of texts[1:] is right, counted from 0."""

    index: int


Target = Label | LabelSet | ScoreTarget | Tagged | Answers | ChoiceIndex


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One row: its texts, its target if it has one, and where it stands.

    `texts` is one text, a pair, or several fields; for multiple choice the context, then the
    choices; for questions the question, then the context. `line` is where its record begins,
    counted from 1; `id` the file's own, else the line. `target` None: the row has no label.
    `units` are the words as the file divides texts[0], () if it does not; a `Tagged` has its own.
    """

    source: str
    line: int
    id: str
    texts: tuple[str, ...]
    target: Target | None = None
    extra: Mapping[str, str] = field(default_factory=dict)
    units: tuple[tuple[int, int], ...] = ()

    @property
    def place(self) -> str:
        """Where it stands, for messages."""
        return f"{self.source}, line {self.line}"


def label_names(target: Target | None) -> tuple[str, ...]:
    """The labels of a target: its names, or of tags the kind of each span; () for other targets."""
    if isinstance(target, Label):
        return (target.name,)
    if isinstance(target, LabelSet):
        return target.names
    if isinstance(target, Tagged):
        starts = (tag for tag in target.tags if tag != "O" and not tag.startswith("I-"))
        return tuple(tag.removeprefix("B-") for tag in starts)
    return ()
