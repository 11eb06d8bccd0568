"""ERNIE 2.0 (Sun et al. 2019, arXiv:1907.12412): tasks that begin one after another.

Each text belongs to one task, whose id is added to every row. From the share of training at which a
task begins it is learned together with the tasks before it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import nn

from bertsmith.config import Settings
from bertsmith.corpus.examples import ChangedExamples, ChosenDocuments, ExampleSource
from bertsmith.corpus.rows import RowsBatch
from bertsmith.errors import ConfigError
from bertsmith.nn.inputs import TASKS
from bertsmith.nn.loss import Score, cross_entropy
from bertsmith.objectives.batch import PretrainBatch, Targets, rows_inputs
from bertsmith.objectives.continual.tasks import (
    CapitalTask,
    ContinualTask,
    DistanceTask,
    ElsewhereTask,
    KnowledgeMasking,
    RelationTask,
    RelevanceTask,
    ReorderTask,
)
from bertsmith.objectives.masked import ByWeight
from bertsmith.objectives.masked_lm import MaskedLMObjective
from bertsmith.objectives.masking.masking import Masking
from bertsmith.objectives.objective import Objective
from bertsmith.objectives.program import (
    Losses,
    MaskingProgramSettings,
    ModelBuilder,
    PretrainModule,
    Scores,
)
from bertsmith.text.tokenizer import Tokenizer

log = logging.getLogger(__name__)

MASKED = MaskedLMObjective()


class ContinualProgram:
    """Predicts what the task of a batch asks; a batch is of one task, its `source`."""

    def __init__(self, tasks: Sequence[ContinualTask], masking: Masking) -> None:
        self.tasks = {task.name: task for task in tasks}
        self.masking = masking

    @property
    def weights(self) -> Mapping[str, float]:
        """The weight of each task."""
        return {name: task.weight for name, task in self.tasks.items()}

    def build(self, builder: ModelBuilder) -> PretrainModule:
        """The model with a head for each task; the folder records the ids of the tasks."""
        ids = {name: task.id for name, task in self.tasks.items()}
        last = max(ids.values())
        if builder.spec.tasks <= last:
            raise ConfigError(
                f"the tasks have ids up to {last} and the model {builder.spec.tasks or 'no'} tasks:"
                f' set model.variant="ernie" and model.tasks={last + 1}, or other ids by `task`'
            )
        reads = {task.reads for task in self.tasks.values()}
        heads = [builder.vocabulary_head] if "masked" in reads else []
        model = builder.model(heads, pooler="text" in reads)

        def own_heads() -> dict[str, nn.Module]:
            width = model.spec.hidden
            return {
                name: nn.Linear(width, task.classes)
                for name, task in self.tasks.items()
                if task.classes
            }

        module = PretrainModule(self, model, own_heads=builder.own_heads(own_heads))
        module.record = {"tasks": ids}
        return module

    def prepare(self, rows: RowsBatch, share: float = 0.0) -> PretrainBatch:
        """The texts of one task with its id, masked if the task is to fill masks."""
        if rows.source not in self.tasks:
            raise ConfigError(f"these texts are of no task of this program: {rows.source!r}")
        task = self.tasks[rows.source]
        ids = rows.ids
        if task.reads == "masked":
            masked = self.masking(rows, share)
            ids, targets = masked.ids, MASKED.targets(rows, masked)
        else:
            targets = _targets(rows, task)
        tasks = np.full(len(rows.ids), task.id, dtype=np.int64)
        arranged = replace(rows, channels={**rows.channels, TASKS: tasks})
        return PretrainBatch.of(rows_inputs(arranged, ids), {task.name: targets})

    def losses(self, module: PretrainModule, batch: PretrainBatch) -> tuple[Losses, Scores]:
        """The loss and the accuracy of the batch's task."""
        model = module.model
        hidden = model(batch.inputs, rows=batch.rows).hidden
        losses: Losses = {}
        scores: Scores = {}
        for name, targets in batch.targets.items():
            if self.tasks[name].reads == "masked":
                losses[name], scores[name] = MASKED.loss(model, None, hidden, targets)
                continue
            rows = hidden[targets.at]
            if self.tasks[name].reads == "text":
                rows = model.encoder.pool(rows)
            logits = module.own_heads[name](rows)
            losses[name] = cross_entropy(logits, targets.of)
            correct = (logits.detach().argmax(-1) == targets.of).sum()
            scores[name] = Score(correct, targets.count)
        return losses, scores


def _targets(rows: RowsBatch, task: ContinualTask) -> Targets:
    """The labeled rows, or the first row of each text with the class of the text."""
    labels = rows.token_labels if task.reads == "tokens" else rows.pair_labels
    if labels is None:
        raise ConfigError(f"these texts have no labels for {task.name}")
    if task.reads == "text":
        at, of = rows.starts, labels
    else:
        at = np.flatnonzero(labels >= 0)
        of = labels[at]
    return Targets(at=torch.from_numpy(at), of=torch.from_numpy(of.copy()))


class TaskTable(Settings):
    """The tasks of a recipe, each a weight or a table of settings; 0 leaves one out."""

    knowledge: Annotated[KnowledgeMasking | None, ByWeight] = None
    capital: Annotated[CapitalTask | None, ByWeight] = None
    elsewhere: Annotated[ElsewhereTask | None, ByWeight] = None
    reorder: Annotated[ReorderTask | None, ByWeight] = None
    distance: Annotated[DistanceTask | None, ByWeight] = None
    relation: Annotated[RelationTask | None, ByWeight] = None
    relevance: Annotated[RelevanceTask | None, ByWeight] = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if not self.chosen:
            raise ValueError(f"name at least one task: {', '.join(type(self).model_fields)}")
        if all(task.after > 0 for task in self.chosen):
            raise ValueError("no task begins at once: set `after` of one of them to 0")
        ids = [task.id for task in self.chosen]
        if len(set(ids)) < len(ids):
            raise ValueError(f"each task needs an id of its own, not {ids}: change `task`")
        return self

    @property
    def chosen(self) -> tuple[ContinualTask, ...]:
        """The tasks that have a weight."""
        named: list[Any] = [getattr(self, name) for name in type(self).model_fields]
        return tuple(task for task in named if task is not None)


class ContinualSettings(MaskingProgramSettings):
    """Tasks that begin one after another.

    With `old = "drop"` only the tasks that began last are learned: what staging without the old
    tasks would forget.
    """

    kind: Literal["continual"] = "continual"
    objectives: TaskTable = Field(
        default_factory=lambda: TaskTable(knowledge=1.0)  # type: ignore[arg-type]
    )
    old: Literal["keep", "drop"] = "keep"

    def make(self, tokenizer: Tokenizer) -> ContinualProgram:
        """The program for a vocabulary."""
        return ContinualProgram(self.objectives.chosen, Masking.of(self.mask, tokenizer))

    @property
    def token_objective(self) -> Objective | None:
        """The masked LM of the knowledge task."""
        task = self.objectives.knowledge
        return None if task is None else MaskedLMObjective(weight=task.weight)

    @property
    def mixes_documents(self) -> bool:
        """The distance of sentences needs two documents."""
        return self.objectives.distance is not None

    @property
    def uniform(self) -> bool:
        """Each task has a head of its own, and ranks work on different tasks."""
        return len(self.objectives.chosen) == 1

    @property
    def stages(self) -> Mapping[float, str]:
        """The tasks that are learned between one beginning and the next."""
        starts = sorted({task.after for task in self.objectives.chosen})
        ends = [*starts[1:], 1.0]
        return {
            end: ", ".join(task.name for task in self.active(start))
            for start, end in zip(starts, ends, strict=True)
        }

    @property
    def files(self) -> tuple[Path, ...]:
        """Lists of markers and labeled pairs."""
        return tuple(file for task in self.objectives.chosen for file in task.files)

    def active(self, share: float) -> tuple[ContinualTask, ...]:
        """The tasks that are learned when `share` of training is done."""
        begun = [task for task in self.objectives.chosen if task.after <= share]
        if self.old == "drop":
            newest = max(task.after for task in begun)
            begun = [task for task in begun if task.after == newest]
        return tuple(begun)

    def allotted(self, texts: int, share: float) -> Mapping[str, int]:
        """The texts of a step by the shares of the tasks, at least one each."""
        tasks = self.active(share)
        if texts < len(tasks):
            raise ConfigError(
                f"a step of {texts} texts cannot serve {len(tasks)} tasks: raise batch.sequences "
                "or batch.tokens"
            )
        total = sum(task.share for task in tasks)
        exact = [task.share / total * texts for task in tasks]
        counts = [max(1, int(one)) for one in exact]
        while sum(counts) != texts:  # the one that is farthest from its share, the first of equals
            missing = 1 if sum(counts) < texts else -1
            gaps = [missing * (one - count) for one, count in zip(exact, counts, strict=True)]
            able = [n for n, count in enumerate(counts) if missing > 0 or count > 1]
            counts[max(able, key=lambda n: gaps[n])] += missing
        return {task.name: count for task, count in zip(tasks, counts, strict=True)}

    def sources(self, chosen: ChosenDocuments) -> Mapping[str, ExampleSource]:
        """The examples of each task; held-out documents may have none for some."""
        found: dict[str, ExampleSource] = {}
        for task in self.objectives.chosen:
            try:
                source = task.source(chosen)
                source.count(0)
            except ConfigError as fault:
                if chosen.training:
                    raise
                log.warning("nothing is held out for %s: %s", task.name, fault)
                continue
            found[task.name] = ChangedExamples(source, partial(replace, source=task.name))
        return found
