"""The kinds of training behind `finetune`, by task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bertsmith.training.kind import TrainingKind, TrainingRequest
from bertsmith.training.kinds.labeled.kind import LABELED
from bertsmith.training.kinds.spelling.kind import SPELLING
from bertsmith.training.kinds.write.kind import WRITE

BY_TASK: Mapping[str, TrainingKind[Any, Any, Any]] = {
    "write": WRITE,
    "similar": WRITE,
    "correct": SPELLING,
}
"""Tasks with a kind of their own; all others learn from labeled rows."""


def finetuning_kind(request: TrainingRequest) -> TrainingKind[Any, Any, Any]:
    """The kind of a fine-tuning, by its task."""
    return BY_TASK.get(request.spec.task or "", LABELED)
