"""The kinds of target that a row of labeled data may have, one record each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bertsmith.errors import unknown
from bertsmith.labeled.example import Answers, ChoiceIndex, Label, LabelSet, ScoreTarget, Tagged


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
