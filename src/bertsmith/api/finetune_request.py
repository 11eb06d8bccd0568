"""What is fine-tuned on what, and what came out: shared by labeled rows and pairs of texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bertsmith.api.trained import TrainedModel
from bertsmith.correction.recipe import CORRECT, CorrectRecipe, load_correct_recipe
from bertsmith.labeled.example import PAIR_TASKS
from bertsmith.labeled.read.reader import OnError
from bertsmith.labeled.spec import DataSpec
from bertsmith.labeled.split.splits import USUAL
from bertsmith.seq2seq.recipe import WriteRecipe, load_write_recipe
from bertsmith.training.execution.execution import RunSettings
from bertsmith.training.finetune.recipe import FinetuneRecipe, load_finetune_recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class FinetuneRequest:
    """What to fine-tune on what; everything but `data`, `model` and `out` has a default.

    `overrides` are settings as "section.key=value", `spec` is what is known of the columns,
    `files` names dev or test files that are not in `data`, `shares` how one file is split.
    """

    data: Path
    model: str
    out: Path
    recipe: str | Path | None = None
    overrides: Sequence[str] = ()
    accept: Sequence[str] = ()
    spec: DataSpec = field(default_factory=DataSpec)
    on_error: OnError = "stop"
    files: Mapping[str, Path] = field(default_factory=dict)
    shares: Sequence[float] = USUAL
    split_seed: int = 0
    seeds: int = 1
    folds: int | None = None
    device: str | None = None

    def read_recipe(self, task: str | None) -> FinetuneRecipe:
        """The recipe by name or path, or the default of the task, with the overrides."""
        return load_finetune_recipe(self.recipe, self.overrides, task=task)

    def read_write_recipe(self) -> WriteRecipe:
        """The same for tasks on pairs of texts, whose default recipe has the name of the task."""
        return load_write_recipe(self.recipe or str(self.spec.task), self.overrides)

    def read_correct_recipe(self) -> CorrectRecipe:
        """The same for spelling correction."""
        return load_correct_recipe(self.recipe, self.overrides)

    def run_settings(self) -> RunSettings:
        """What the recipe says of processes, threads and seeds."""
        if self.spec.task == CORRECT:
            return self.read_correct_recipe().run
        if self.spec.task in PAIR_TASKS:
            return self.read_write_recipe().run
        return self.read_recipe(self.spec.task).run


@dataclass(frozen=True, slots=True, kw_only=True)
class FinetunedModel(TrainedModel):
    """How a fine-tuning ended; `record` and `report` are None when it was stopped.

    `record` is what proof.json holds: metrics with intervals, baselines, worst errors or examples.
    """

    report: Path | None = None
