"""Fine-tuning from labeled rows to a model folder; the same call again goes on."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from bertsmith.errors import ConfigError
from bertsmith.files.digest import json_digest
from bertsmith.folders.read import load_model
from bertsmith.labeled.example import Example
from bertsmith.tasks.feature import Feature
from bertsmith.tasks.inference import answer, predictions
from bertsmith.tasks.kinds import task_from_data, task_kind
from bertsmith.tasks.model.auxiliary import auxiliary_from, with_auxiliary
from bertsmith.tasks.model.meta import MetaTables, meta_sizes, meta_tables, with_meta
from bertsmith.tasks.model.task_model import TaskModel
from bertsmith.tasks.prediction import Prediction
from bertsmith.tasks.r_drop import RDrop
from bertsmith.tasks.task import Loss, Task, score
from bertsmith.tasks.task_settings import TaskOptions
from bertsmith.tasks.token_dropout import TokenDropout
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.training.checkpoints.checkpoint import CHECKPOINTS, Checkpoints
from bertsmith.training.checkpoints.resume import Fact, flatten
from bertsmith.training.execution.execution import Place
from bertsmith.training.finetune.default_rate import usual_rate
from bertsmith.training.finetune.embedding_subset import keep_seen, put_back_all
from bertsmith.training.finetune.encoder_cache import Memory, keep_vectors
from bertsmith.training.finetune.model import build_task_model
from bertsmith.training.finetune.recipe import FinetuneRecipe
from bertsmith.training.finetune.result import save_task_model
from bertsmith.training.finetune.workload import PART, FinetuneWork, Regularizers
from bertsmith.training.loop.evaluate import Evaluation, EvaluationSettings
from bertsmith.training.loop.loop import train
from bertsmith.training.loop.progress import Watcher
from bertsmith.training.loop.run import Outcome, Run
from bertsmith.training.loop.schedule import LinearSettings

log = logging.getLogger(__name__)

# The loop records the optimizer itself; the others change nothing that is learned.
LEFT_OUT = ("about", "optimizer", "averaging", "save", "run")


@dataclass(frozen=True, slots=True, kw_only=True)
class FinetuneJob:
    """What is to be learned, from what, and where the result goes.

    `known` are rows whose labels the model is to have, too, though it does not learn from them;
    `accept` names settings whose change since the last checkpoint is wanted. `language` of the
    texts, if it is known.
    """

    recipe: FinetuneRecipe
    task: str
    model: str
    train: Sequence[Example]
    dev: Sequence[Example]
    out: Path
    known: Sequence[Example] = ()
    accept: Collection[str] = ()
    language: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finetuned:
    """How a run ended; figures and predictions of the development rows, thresholds tuned on them.

    `model` is None when the run was stopped before its end.
    """

    outcome: Outcome
    steps: int
    model: TaskModel | None = None
    tokenizer: Tokenizer | None = None
    dev_figures: dict[str, float] | None = None
    dev_predictions: Sequence[Prediction] = ()


def finetune(
    job: FinetuneJob,
    *,
    place: Place | None = None,
    watch: Watcher | None = None,
    loss: Loss | None = None,
    memory: Memory | None = None,
) -> Finetuned:
    """Train, or go on training, and write the model folder with the best weights.

    `loss` takes the place of the task's own: logits and their batch -> LossSum, whose count is
    `task.count(batch)`. Jobs that differ in nothing but their seed may share a `memory`: a frozen
    encoder then reads the rows once for all of them.
    """
    place = place or Place()
    recipe = job.recipe
    _check(job, place)
    task = job_task(job)
    tables = meta_tables(job.train, recipe.head.meta)
    columns = auxiliary_from(job.train, recipe.auxiliary, task)
    model, tokenizer = build_task_model(
        recipe,
        load_model(job.model),
        task,
        meta_sizes=meta_sizes(tables),
        auxiliary=columns,
        device=place.device.type,
    )
    regularizers = _regularizers(job, tokenizer)
    rows = _features(job, model, tokenizer, tables, regularizers)
    place.prepare(model)
    steps = max(1, round(len(job.train) / recipe.plan.batch * recipe.plan.epochs))
    began = time.monotonic()
    rate = recipe.optimizer.lr or usual_rate(model, rows["train"], place)
    if model.keeps_vectors and steps not in Checkpoints(job.out / CHECKPOINTS).steps():
        rows = keep_vectors(model, rows, place=place, watch=watch, memory=memory)
    work = FinetuneWork(
        task,
        with_auxiliary(rows["train"], job.train, columns),
        plan=recipe.plan,
        seed=recipe.run.seed,
        ranks=place.ranks,
        loss=loss,
        auxiliary=columns,
        regularizers=regularizers,
    )
    run = Run(
        folder=job.out,
        model=model,
        work=work,
        schedule=LinearSettings(steps=steps, warmup=recipe.plan.warmup),
        optimizer=recipe.optimizer.at(rate),
        save=recipe.save,
        evaluation=EvaluationSettings(
            held_out=0.0,
            every=max(1, round(work.steps_an_epoch / recipe.plan.evaluations)),
        ),
        averaging=recipe.averaging,
        seed=recipe.run.seed,
        facts=facts(job, place, loss),
        accept=frozenset(job.accept),
        device=place.device,
        ranks=place.ranks,
        precision=place.path.context,
        watch=watch,
        spent=time.monotonic() - began,
        judge=lambda: _judged(model, rows["dev"], job.dev, place, loss),
        best=recipe.best,
    )
    outcome = train(run)
    if outcome.status != "finished":
        return Finetuned(outcome=outcome, steps=steps)
    return _finished(job, outcome, steps, model, tokenizer, tables, rows["dev"], place)


def job_task(job: FinetuneJob) -> Task:
    """The task of a job's labeled rows, as its recipe and language shape it."""
    recipe = job.recipe
    options = TaskOptions(
        loss=recipe.loss,
        settings=recipe.task,
        pair=recipe.encoder.pair,
        language=job.language,
    )
    return task_from_data(task_kind(job.task), [*job.train, *job.known], options)


def _regularizers(job: FinetuneJob, tokenizer: Tokenizer) -> Regularizers:
    wanted, seed = job.recipe.regularization, job.recipe.run.seed
    return Regularizers(
        token_dropout=TokenDropout.of(wanted.token_dropout, tokenizer, seed),
        r_drop=RDrop.of(wanted.r_drop, job.task),
    )


def _features(
    job: FinetuneJob,
    model: TaskModel,
    tokenizer: Tokenizer,
    tables: MetaTables,
    regularizers: Regularizers,
) -> dict[str, list[Feature]]:
    """The passages of both sets of rows; the model is told which tokens it will see."""
    rows = {
        name: with_meta(model.task.features(some, tokenizer, job.recipe.length), some, tables)
        for name, some in (("train", job.train), ("dev", job.dev))
    }
    if model.bag is not None:
        model.bag.learn_rarity(rows["train"])
    dropout = regularizers.token_dropout
    keep_seen(
        model.model,
        [*rows["train"], *rows["dev"]],
        also=() if dropout is None else (dropout.mask,),
    )
    return rows


def _check(job: FinetuneJob, place: Place) -> None:
    """Refuse what cannot be done before time goes into it."""
    if not job.dev:
        raise ConfigError("there are no development rows to choose the best weights by")
    RDrop.of(job.recipe.regularization.r_drop, job.task)
    if place.ranks.world == 1:
        return
    from bertsmith.training.execution.fully_sharded import FullySharded  # slow to import

    if isinstance(place.ranks, FullySharded):
        # The loss may hold weights (a CRF's), and figures are made of whole models.
        raise ConfigError(
            "fine-tuning keeps all weights on every rank: run.sharding = fsdp is for pre-training; "
            "set it to ddp"
        )


def _judged(
    model: TaskModel,
    features: Sequence[Feature],
    examples: Sequence[Example],
    place: Place,
    wanted: Loss | None,
) -> Evaluation:
    """Loss and figures of the development rows."""
    found = answer(model, features, device=place.device, precision=place.path.context, loss=wanted)
    loss = found.loss if found.loss is not None else float("nan")
    figures = score(model.task, examples, predictions(model, found, features, examples))
    return Evaluation(
        losses={PART: loss},
        accuracy={},
        counts={PART: len(examples)},
        total=loss,
        figures={**figures, "loss": loss},
    )


def _finished(
    job: FinetuneJob,
    outcome: Outcome,
    steps: int,
    model: TaskModel,
    tokenizer: Tokenizer,
    tables: MetaTables,
    features: Sequence[Feature],
    place: Place,
) -> Finetuned:
    """Tune thresholds on the development rows, and write the folder."""
    found = answer(model, features, device=place.device, precision=place.path.context)
    said = predictions(model, found, features, job.dev)
    model.task = model.task.tuned(job.dev, said)
    said = predictions(model, found, features, job.dev)
    put_back_all(model.model)
    if place.ranks.is_first:
        save_task_model(model, tokenizer, job.out, recipe=job.recipe, tables=tables)
    place.ranks.barrier()
    Checkpoints(job.out / CHECKPOINTS, ranks=place.ranks).keep_newest()
    return Finetuned(
        outcome=outcome,
        steps=steps,
        model=model,
        tokenizer=tokenizer,
        dev_figures=score(model.task, job.dev, said),
        dev_predictions=said,
    )


def facts(job: FinetuneJob, place: Place, loss: Loss | None = None) -> dict[str, Fact]:
    """What a checkpoint records of a job besides what the loop records: see `Run`."""
    tree = job.recipe.model_dump(mode="json")
    return {
        **flatten({name: part for name, part in tree.items() if name not in LEFT_OUT}),
        "task": job.task,
        "model": job.model,
        "data.train": _digest(job.train, job.recipe),
        "data.dev": _digest(job.dev, job.recipe),
        "precision": place.path.name,
        **({} if loss is None else {"loss.own": getattr(loss, "__qualname__", repr(loss))}),
    }


def _digest(examples: Sequence[Example], recipe: FinetuneRecipe) -> str:
    """Of all that is read of the rows."""
    columns = (*recipe.head.meta, *recipe.auxiliary)
    return json_digest(
        {
            "rows": [
                [*e.texts, repr(e.target), *(e.extra.get(column) for column in columns)]
                for e in examples
            ]
        }
    )
