"""Ensemble: several fine-tuned models that predict as one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from bertsmith.errors import ConfigError, FolderError
from bertsmith.folders.runs import finished_runs
from bertsmith.labeled.example import Example
from bertsmith.runtime.load_predictor import load_predictor
from bertsmith.runtime.predictor import ModelPredictor, Predictor, Row
from bertsmith.runtime.selection import Precision
from bertsmith.tasks.feature import Feature
from bertsmith.tasks.inference import TaskLogits
from bertsmith.tasks.task import Logits, Task
from bertsmith.text.encoding import UnknownTokens


class Ensemble(Predictor):
    """A predictor whose probabilities are the mean over several models.

    Models that read rows (tags, answers) average logits, so they must split texts equally; others
    may have different encoders, vocabularies and lengths.
    """

    def __init__(self, members: Sequence[ModelPredictor]) -> None:
        if not members:
            raise ConfigError("an ensemble has one model or more")
        self.members = tuple(members)
        self._joint = joint_task([one.task for one in self.members])
        if self._joint.reads == "rows":
            _check_alike(self.members)

    @property
    def task(self) -> Task:
        """What the models predict, with the mean of their thresholds."""
        return self._joint

    @property
    def meta_columns(self) -> tuple[str, ...]:
        """Columns that any of the models reads in addition to the texts."""
        return tuple(dict.fromkeys(c for one in self.members for c in one.meta_columns))

    def auxiliary(self, rows: Iterable[Row]) -> list[dict[str, str | float]]:
        """Not of several models: their further columns may differ."""
        raise ConfigError("an ensemble predicts its task alone; use one of its models by itself")

    def settle(self, tokens: int) -> str:
        """The engine that each of the models has for about so many tokens, for good."""
        return "; ".join(one.settle(tokens) for one in self.members)

    @property
    def texts(self) -> int:
        """The number of texts in each training row of the first model."""
        return self.members[0].texts

    def answered(
        self, examples: Sequence[Example], unknown: UnknownTokens | None = None
    ) -> tuple[list[Feature], TaskLogits]:
        """All passages that the models read, and the mean of their logits."""
        answers = [one.answered(examples, unknown) for one in self.members]
        tasks = [one.task for one in self.members]
        logits = joint_logits(tasks, [one.logits for _, one in answers])
        features = list(answers[0][0])
        if self.task.reads == "text":
            # Decoding reads only what was cut from them: that of the model that reads least.
            features = [feature for some, _ in answers for feature in some]
        return features, TaskLogits(logits=logits, loss=None)


def joint_task(tasks: Sequence[Task]) -> Task:
    """The task of all models together."""
    first = tasks[0]
    for other in tasks[1:]:
        if (other.name, other.labels) != (first.name, first.labels):
            raise ConfigError(
                "the models of an ensemble must have the same task and labels: one is for "
                f"{_named(first)}, another for {_named(other)}"
            )
    return first if len(tasks) == 1 else first.kind.joint_task(tasks)


def joint_logits(tasks: Sequence[Task], given: Sequence[Sequence[Logits]]) -> list[Logits]:
    """Logits of each model, entry by entry -> logits that `joint_task` decodes."""
    if len(given) == 1:
        return list(given[0])
    join = tasks[0].kind.joint_logits
    return [
        join(tasks, [np.asarray(one, dtype=np.float64) for one in entry]).astype(np.float32)
        for entry in zip(*given, strict=True)
    ]


def load_ensemble(
    names: Sequence[str | Path],
    *,
    device: str = "cpu",
    precision: Precision = "fp32",
    threads: int | None = None,
    knowledge: str | Path | None = None,
) -> Ensemble:
    """The ensemble of fine-tuned folders; one folder means the runs below it."""
    folders = [Path(name) for name in names]
    if len(folders) == 1:
        folders = runs_below(folders[0])
    return Ensemble(
        [
            load_predictor(
                one, device=device, precision=precision, threads=threads, knowledge=knowledge
            )
            for one in folders
        ]
    )


def runs_below(out: Path) -> list[Path]:
    """The finished runs of a folder that was made with several seeds or folds."""
    runs = finished_runs(out)
    if not runs:
        raise FolderError(
            f"{out} holds no runs to average; `bertsmith finetune DATA --model M --out DIR --seeds "
            "5` makes them, or name several folders"
        )
    return runs


def _named(task: Task) -> str:
    labels = f" ({', '.join(task.labels[:5])}{' ...' if len(task.labels) > 5 else ''})"
    return f"{task.name}{labels if task.labels else ''}"


def _check_alike(members: Sequence[ModelPredictor]) -> None:
    first = members[0]
    files = first.tokenizer.files()
    for other in members[1:]:
        if other.tokenizer.files() != files or other.lengths != first.lengths:
            raise ConfigError(
                f"models for {first.task.name} average the logits of each token: all must have "
                "the same vocabulary and the same length settings"
            )
