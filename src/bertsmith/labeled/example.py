"""One row of a data set and its target: the types that every reader gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bertsmith.errors import unknown
from bertsmith.wording import counted, shown


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


def shown_target(target: Target | None) -> str:
    """A target as messages show it."""
    if isinstance(target, Label):
        return shown(target.name)
    if isinstance(target, LabelSet):
        return ", ".join(map(shown, target.names)) or "no label"
    if isinstance(target, ScoreTarget):
        return f"the number {target.value:g}"
    if isinstance(target, ChoiceIndex):
        return f"choice {target.index}"
    if isinstance(target, Tagged):
        return counted(len(target.tags), "tag")
    if isinstance(target, Answers):
        return counted(len(target.placed) + len(target.unplaced), "answer")
    return "missing"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetKind:
    """How targets are stored in files; `task` is the one that is trained on them by default."""

    name: str
    task: str
    type: type
    column: str
    """The label column of files that are written here."""
    form: str | None = None
    """The format that holds it, if a plain column does not."""
    named: bool = False
    """Whether it consists of labels with names, which `DataSpec.labels` may list."""
    many: bool = False
    """Whether a row may have several labels: in one cell, or in columns of 0 and 1."""
    choices: bool = False
    """Whether the texts of a row are a context and its choices."""
    fixed_texts: bool = False
    """Whether all rows of a model have the same number of texts."""


TARGETS: Mapping[str, TargetKind] = {
    one.name: one
    for one in (
        TargetKind(
            name="label", task="classify", type=Label, column="label", named=True, fixed_texts=True
        ),
        TargetKind(
            name="labels",
            task="multilabel",
            type=LabelSet,
            column="labels",
            named=True,
            many=True,
            fixed_texts=True,
        ),
        TargetKind(
            name="number", task="regress", type=ScoreTarget, column="score", fixed_texts=True
        ),
        TargetKind(name="tags", task="tag", type=Tagged, column="entities", form="spans"),
        TargetKind(name="answers", task="answer", type=Answers, column="answers", form="answers"),
        TargetKind(name="choice", task="choose", type=ChoiceIndex, column="label", choices=True),
    )
}
PAIR_TASKS = ("write", "similar", "correct")
"""Tasks on pairs of texts without a label; see `bertsmith.training.kinds`."""
BY_TASK = {one.task: one for one in TARGETS.values()}
BY_TYPE = {one.type: one for one in TARGETS.values()}


def target_kind(name: str | None, task: str | None) -> TargetKind | None:
    """The kind of this name, else that of a task trained by default; None if both are open."""
    if name is not None:
        if name not in TARGETS:
            raise unknown("kind of target", name, TARGETS)
        return TARGETS[name]
    if task is None:
        return None
    if task not in BY_TASK:
        raise unknown("task", task, BY_TASK)
    return BY_TASK[task]


def target_setting(task: str, target: str) -> dict[str, str]:
    """The settings of a data spec for a task with this kind of target, what is default left out."""
    usual = BY_TASK.get(task)
    return {"task": task} if usual and usual.name == target else {"task": task, "target": target}
