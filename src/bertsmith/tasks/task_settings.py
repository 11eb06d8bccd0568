"""Settings of single tasks (section `task` of a recipe), and all that a task is made with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from bertsmith.config import Settings
from bertsmith.tasks.losses import CrossEntropySettings, LossSettings

Count = Annotated[int, Field(gt=0)]
Pair = Literal["cross-encoder", "bi-encoder"]


class TaskSettings(Settings):
    """Tagging: `crf`. Question answering: all others, in tokens but `n_best`."""

    crf: bool = False  # learn transition scores between neighboring tags
    longest: Count | None = None  # answer; None: 30, or 60 where a character is a token
    n_best: Count = 20  # candidate answers per question
    question_limit: Count = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOptions:
    """What a recipe and the user say of a task, beyond the training rows."""

    loss: LossSettings = field(default_factory=CrossEntropySettings)
    settings: TaskSettings = field(default_factory=TaskSettings)
    pair: Pair = "cross-encoder"
    language: str | None = None
