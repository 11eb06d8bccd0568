"""A learner of one's own: vectors that count words; trained with several seeds, resumed, saved."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_finetuning import StopAt, rows, tiny_folder

from bertsmith import load
from bertsmith.files.atomic_folder import result_folder
from bertsmith.folders.read import load_model
from bertsmith.folders.write import save_model
from bertsmith.models.sentence_spec import SentenceSettings
from bertsmith.nn import Inputs, LossSum
from bertsmith.training.execution.execution import Execution
from bertsmith.training.learner import (
    Learner,
    LoopInputs,
    Prepared,
    TrainingJob,
    job_facts,
    run_job,
)
from bertsmith.training.loop.epochs import EpochRows
from bertsmith.training.loop.evaluate import evaluate_losses
from bertsmith.training.loop.workload import Workload
from bertsmith.training.recipe import DropoutSettings, RowPlan, TrainingRecipe
from bertsmith.training.repeat.repeat import train_seeds
from bertsmith.training.trainable import trainable


@dataclass(frozen=True)
class Words(Workload):
    ids: Any
    order: EpochRows
    weights = {"count": 1.0}  # noqa: RUF012

    def micro_batches(self, step, share):
        own = [self.ids[row] for row in self.order.of(self.order.own(step))]
        return [Inputs.of(np.concatenate(own), tuple(map(len, own)))]

    counts = staticmethod(lambda batch: {"count": len(batch.layout.lengths)})
    tokens = staticmethod(lambda batch: len(batch.ids))
    held_out = lambda self: self.micro_batches(0, 0.0)  # noqa: E731

    def loss(self, model, batch):
        lengths = batch.layout.lengths
        found = torch.stack([part.mean(0)[0] for part in model(batch).hidden.split(lengths)])
        wanted = (torch.tensor(lengths) - 2) / 10  # [CLS] and [SEP] are no words
        return {"count": LossSum((found - wanted).square().sum(), len(lengths))}, {}


@dataclass(frozen=True)
class Counter:
    model: Any
    tokenizer: Any
    figures: dict[str, float]
    notes = ()

    def save(self, out):
        pooled = SentenceSettings(pooling=("mean",))
        with result_folder(out) as staging:
            save_model(self.model.eval(), self.tokenizer, staging, sentence=pooled)


def prepare(job, execution, watch):
    loaded, recipe = load_model(job.model), job.recipe
    model = trainable(loaded.model, (), DropoutSettings(dropout=0.0))
    order = EpochRows(len(job.rows), batch=8, seed=recipe.run.seed, ranks=execution.ranks)
    work = Words(loaded.tokenizer.fast_ids(job.rows, 64)[0], order)

    def evaluate():
        found = evaluate_losses(model, work, execution)
        return replace(found, figures={"loss": found.total})

    how = {"schedule": recipe.plan.schedule(1), "rate": 3e-3, "every": 20, "evaluate": evaluate}
    return Prepared(inputs=LoopInputs.of_recipe(recipe, model, work, **how), made=(model, loaded))


def finish(job, made, outcome, execution):
    return Counter(made[0], made[1].tokenizer, outcome.evaluation.figures)


class CountRecipe(TrainingRecipe):
    plan: RowPlan = RowPlan(steps=80, batch=8)


LEARNER = Learner(
    name="counting",
    facts=lambda job, execution: job_facts(job, execution, {"rows": len(job.rows)}),
    prepare=prepare,
    finish=finish,
)


@pytest.fixture
def job(tmp_path: Path) -> Any:
    texts = [row.texts[0] for row in rows(64)]
    model = tiny_folder(tmp_path / "start")
    return TrainingJob(
        recipe=CountRecipe(), task="count", model=model, rows=texts, out=tmp_path / "out"
    )


def off(folder: Path, texts: list[str]) -> float:
    with load(folder, precision="fp32") as model:
        said = 10 * model.encode(texts)[:, 0]
    return float(np.abs(said - [len(text.split()) for text in texts]).mean())


def test_it_learns_and_resumes_with_the_same_bytes(job: Any, tmp_path: Path) -> None:
    done = run_job(LEARNER, job)
    assert done.finished is not None
    assert done.dev_figures == done.outcome.evaluation.figures
    assert off(job.out, job.rows) < 1.0 < off(job.model, job.rows)
    cut, stop = replace(job, out=tmp_path / "cut"), StopAt(30)
    stopped = run_job(LEARNER, cut, execution=Execution(stop=stop), watch=stop)
    assert (stopped.outcome.status, stopped.finished, stopped.dev_figures) == (
        "stopped",
        None,
        None,
    )
    assert 30 <= stopped.outcome.step < 40
    assert not (cut.out / "config.json").exists()
    run_job(LEARNER, cut)
    weights = "model.safetensors"
    assert (cut.out / weights).read_bytes() == (job.out / weights).read_bytes()


def test_the_best_of_several_seeds_is_saved(job: Any) -> None:
    short = replace(job, recipe=CountRecipe(plan=RowPlan(steps=10, batch=8)))
    many = train_seeds(LEARNER, short, [3, 4])
    figures = {one.number: one.figures["loss"] for one in many.members}
    assert many.best.number == min(figures, key=figures.get)
    assert many.trained.dev_figures == many.best.figures
    chosen = many.best.folder / "model.safetensors"
    assert chosen.read_bytes() == (job.out / "model.safetensors").read_bytes()
