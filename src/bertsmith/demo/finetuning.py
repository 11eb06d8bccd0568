"""A classifier from docstrings, with its proof: `bertsmith finetune` in half a minute."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from bertsmith.evaluation.length_table import length_table
from bertsmith.files.atomic_file import write_staged
from bertsmith.folders.read import load_tokenizer
from bertsmith.labeled.split.splits import load_splits
from bertsmith.labeled.survey.survey import survey
from bertsmith.report.finetune import write_finetune_report
from bertsmith.report.finetune.model_card import model_card
from bertsmith.training.execution.execution import choose_execution
from bertsmith.training.finetune.finetune import FinetuneJob, finetune
from bertsmith.training.finetune.recipe import FinetuneRecipe, load_finetune_recipe
from bertsmith.training.finetune.record import RecordSource, write_record
from bertsmith.training.loop.progress import Watcher

LENGTH = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Proven:
    """The record of the finished classifier and its page."""

    record: dict[str, Any]
    page: Path

    def figure(self, who: str = "") -> float:
        """The accuracy on the test rows, of the model or of a simple rule: majority, words."""
        side = self.record["baselines"]["test"][who] if who else self.record["test"]["figures"]
        return float(side["accuracy"])


def recipe() -> FinetuneRecipe:
    """That of features, which takes seconds, for short texts."""
    return load_finetune_recipe("features", [f"length.max_length={LENGTH}"])


def train(rows: Path, model: str, out: Path, watch: Watcher | None = None) -> Proven:
    """A fresh run on a table of rows; the model, its record and its report come to lie in `out`."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    settings = recipe()
    splits = load_splits(rows, saved=out / "split.json")
    execution = choose_execution(settings.run, out)
    job = FinetuneJob(
        recipe=settings,
        task="classify",
        model=model,
        train=splits.train,
        dev=splits.dev,
        out=out,
        spec=splits.specs["train"],
    )
    finetune(job, execution=execution, watch=watch)
    table = length_table(splits, load_tokenizer(model))
    making = RecordSource(
        job=job,
        splits=splits,
        run=out,
        precision=execution.precision.name,
        threads=torch.get_num_threads(),
        more={"survey": survey(splits).to_json(), "lengths": table.to_json(LENGTH)},
    )
    record = write_record(making)
    page = write_finetune_report(out, record)
    write_staged(out / "README.md", model_card(record, name="docstring-parts").encode())
    return Proven(record=record, page=page)
