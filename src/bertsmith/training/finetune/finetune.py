"""Fine-tuning from labeled rows to a model, in a folder or in memory; resumes in its folder."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bertsmith.errors import ConfigError
from bertsmith.files.digest import json_digest
from bertsmith.folders.encoders import load_encoder
from bertsmith.labeled.example import Example
from bertsmith.labeled.spec import DataSpec
from bertsmith.metrics import better
from bertsmith.tasks.enrichment.enrichment import Enrichment
from bertsmith.tasks.feature import Feature
from bertsmith.tasks.inference import compute_logits
from bertsmith.tasks.kinds import task_from_data, task_kind
from bertsmith.tasks.model.columns import (
    Auxiliary,
    MetaTables,
    auxiliary_from,
    meta_sizes,
    meta_tables,
    with_auxiliary,
)
from bertsmith.tasks.model.task_model import TaskModel
from bertsmith.tasks.prediction import Prediction
from bertsmith.tasks.reading import TaskReading
from bertsmith.tasks.regularizers import RDrop, TokenDropout
from bertsmith.tasks.task import Loss, Task, TaskOptions, score
from bertsmith.text.encoding import FieldEncoder
from bertsmith.training.checkpoints.checkpoint import CHECKPOINTS, Checkpoints, finish_folder
from bertsmith.training.checkpoints.resume import Fact, recorded
from bertsmith.training.execution.execution import Execution
from bertsmith.training.finetune.default_rate import default_rate
from bertsmith.training.finetune.embedding_subset import restore_embeddings, use_embedding_subset
from bertsmith.training.finetune.encoder_cache import EncoderCache, cache_vectors, standardize_mix
from bertsmith.training.finetune.encoder_recipe import fit_recipe
from bertsmith.training.finetune.enrichment import (
    enrichment_facts,
    extra_cells,
    recipe_enrichment,
)
from bertsmith.training.finetune.model import build_task_model, save_task_model
from bertsmith.training.finetune.recipe import FinetuneRecipe
from bertsmith.training.finetune.workload import PART, FinetuneWorkload, Regularizers
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
    """What is to be learned, from what, and where the result goes: nowhere if `out` is None.

    `known` are rows whose labels the model is to have, too, though it does not learn from them;
    `accept` names settings whose change since the last checkpoint is wanted. `language` of the
    texts, if it is known. `spec` is how the training file was read, and is saved with the model.
    """

    recipe: FinetuneRecipe
    task: str
    model: str
    train: Sequence[Example]
    dev: Sequence[Example]
    out: Path | None = None
    known: Sequence[Example] = ()
    accept: Collection[str] = ()
    language: str | None = None
    spec: DataSpec | None = None

    @property
    def folder(self) -> Path:
        """Where the result goes, for what cannot be done in memory."""
        if self.out is None:
            raise ConfigError("this run has no folder; give `out`")
        return self.out


@dataclass(frozen=True, slots=True, kw_only=True)
class FinetuneResult:
    """The result: metrics and predictions of the development rows, thresholds tuned on them.

    `model` is None when the run was stopped before its end.
    """

    outcome: Outcome
    steps: int
    model: TaskModel | None = None
    tokenizer: FieldEncoder | None = None
    dev_figures: dict[str, float] | None = None
    dev_predictions: Sequence[Prediction] = ()
    enrichment: Enrichment | None = None


def finetune(
    job: FinetuneJob,
    *,
    execution: Execution | None = None,
    watch: Watcher | None = None,
    loss: Loss | None = None,
    cache: EncoderCache | None = None,
) -> FinetuneResult:
    """Train, or resume training, and write the model folder with the best weights.

    `loss` takes the place of the task's own: logits and their batch -> LossSum, whose count is
    `task.count(batch)`. Jobs that differ in nothing but their seed may share a `cache`: a frozen
    encoder then reads the rows once for all of them.
    """
    execution = execution or Execution()
    job = replace(job, recipe=fit_recipe(job.recipe, job.model))
    _check(job, execution)
    setup = _prepare(job, execution)
    steps = max(1, round(len(job.train) / job.recipe.plan.batch * job.recipe.plan.epochs))
    began = time.monotonic()
    rate = job.recipe.optimizer.lr or default_rate(setup.model, setup.rows["train"], execution)
    standardize_mix(setup.model, setup.rows["train"], execution)
    caches = setup.model.keeps_vectors or setup.model.keeps_layers
    if caches and not _is_trained(job, steps):
        rows = cache_vectors(setup.model, setup.rows, execution=execution, watch=watch, cache=cache)
        if rows is None:
            outcome = _stopped(job, execution, time.monotonic() - began)
            return FinetuneResult(outcome=outcome, steps=steps)
        setup = replace(setup, rows=rows)
    spent = time.monotonic() - began
    run = _run(job, setup, execution, steps=steps, rate=rate, loss=loss)
    outcome = train(replace(run, watch=watch, spent=spent))
    if outcome.status != "finished":
        return FinetuneResult(outcome=outcome, steps=steps)
    return _finished(job, setup, outcome, steps, execution)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Setup:
    """What is built from a job before its first step."""

    model: TaskModel
    tokenizer: FieldEncoder
    tables: MetaTables
    columns: Sequence[Auxiliary]
    enrichment: Enrichment | None
    regularizers: Regularizers
    rows: dict[str, list[Feature]]  # of train and dev


def _prepare(job: FinetuneJob, execution: Execution) -> _Setup:
    recipe = job.recipe
    task = job_task(job)
    tables = meta_tables(job.train, recipe.head.meta)
    columns = auxiliary_from(job.train, recipe.auxiliary, task)
    enrichment = recipe_enrichment(recipe, task, job.train, device=execution.device.type)
    model, tokenizer = build_task_model(
        recipe,
        load_encoder(job.model),
        task,
        meta_sizes=meta_sizes(tables),
        auxiliary=columns,
        channel=None if enrichment is None else enrichment.shape,
        device=execution.device.type,
    )
    regularizers = _regularizers(job, tokenizer)
    read = TaskReading(
        tokenizer=tokenizer, lengths=recipe.length, tables=tables, enrichment=enrichment
    )
    rows = _features(job, model, read, regularizers)
    execution.prepare(model)
    return _Setup(
        model=model,
        tokenizer=tokenizer,
        tables=tables,
        columns=columns,
        enrichment=enrichment,
        regularizers=regularizers,
        rows=rows,
    )


def _stopped(job: FinetuneJob, execution: Execution, seconds: float) -> Outcome:
    """How a run ends that is stopped before it trains: with the steps of its last checkpoint."""
    steps = [] if job.out is None else Checkpoints(job.out / CHECKPOINTS).steps()
    return Outcome(
        status="stopped",
        step=max(steps, default=0),
        tokens=0,
        seconds=seconds,
        signal=execution.stop.received,
    )


def _is_trained(job: FinetuneJob, steps: int) -> bool:
    """Whether the last step is in a checkpoint already."""
    return job.out is not None and steps in Checkpoints(job.out / CHECKPOINTS).steps()


def _run(
    job: FinetuneJob,
    setup: _Setup,
    execution: Execution,
    *,
    steps: int,
    rate: float,
    loss: Loss | None,
) -> Run:
    recipe, model = job.recipe, setup.model
    workload = FinetuneWorkload(
        model.task,
        with_auxiliary(setup.rows["train"], job.train, setup.columns),
        plan=recipe.plan,
        seed=recipe.run.seed,
        ranks=execution.ranks,
        loss=loss,
        auxiliary=setup.columns,
        regularizers=setup.regularizers,
    )
    return Run(
        folder=job.out,
        model=model,
        workload=workload,
        schedule=LinearSettings(steps=steps, warmup=recipe.plan.warmup),
        optimizer=recipe.optimizer.at(rate),
        save=recipe.save,
        evaluation=EvaluationSettings(
            held_out=0.0,
            every=max(1, round(workload.steps_per_epoch / recipe.plan.evaluations)),
        ),
        averaging=recipe.averaging,
        seed=recipe.run.seed,
        facts=facts(job, execution, loss),
        accept=frozenset(job.accept),
        execution=execution,
        evaluate=lambda: _evaluate(model, setup.rows["dev"], job.dev, execution, loss),
        best=recipe.best,
        better=better,
    )


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


def _regularizers(job: FinetuneJob, tokenizer: FieldEncoder) -> Regularizers:
    wanted, seed = job.recipe.regularization, job.recipe.run.seed
    return Regularizers(
        token_dropout=TokenDropout.of(wanted.token_dropout, tokenizer, seed),
        r_drop=RDrop.of(wanted.r_drop, job.task),
    )


def _features(
    job: FinetuneJob,
    model: TaskModel,
    reading: TaskReading,
    regularizers: Regularizers,
) -> dict[str, list[Feature]]:
    """The passages of both sets of rows; the model trains the embeddings of their tokens alone."""
    rows = {
        name: reading.features(model.task, some)
        for name, some in (("train", job.train), ("dev", job.dev))
    }
    model.head.learn(rows["train"])
    dropout = regularizers.token_dropout
    if not model.frozen:
        use_embedding_subset(
            model.transformer,
            (feature.encoding.ids for feature in [*rows["train"], *rows["dev"]]),
            also=() if dropout is None else (dropout.mask,),
        )
    return rows


def _check(job: FinetuneJob, execution: Execution) -> None:
    """Refuse what cannot be done before time goes into it."""
    if not job.dev:
        raise ConfigError("there are no development rows to choose the best weights by")
    RDrop.of(job.recipe.regularization.r_drop, job.task)
    if execution.ranks.world == 1:
        return
    from bertsmith.training.execution.fully_sharded import FullySharded  # slow to import

    if isinstance(execution.ranks, FullySharded):
        # The loss may hold weights (a CRF's), and metrics need the whole model.
        raise ConfigError(
            "fine-tuning keeps all weights on every rank: run.sharding = fsdp is for pre-training; "
            "set it to ddp"
        )


def _evaluate(
    model: TaskModel,
    features: Sequence[Feature],
    examples: Sequence[Example],
    execution: Execution,
    own_loss: Loss | None,
) -> Evaluation:
    """Loss and metrics of the development rows."""
    output = compute_logits(
        model,
        features,
        device=execution.device,
        precision=execution.precision.context,
        loss=own_loss,
    )
    loss = output.loss if output.loss is not None else float("nan")
    predictions = model.task.decode(output.logits, features, examples)
    figures = score(model.task, examples, predictions)
    return Evaluation(
        losses={PART: loss},
        accuracy={},
        counts={PART: len(examples)},
        total=loss,
        figures={**figures, "loss": loss},
    )


def _finished(
    job: FinetuneJob, setup: _Setup, outcome: Outcome, steps: int, execution: Execution
) -> FinetuneResult:
    """Tune thresholds on the development rows, and write the folder."""
    model, features = setup.model, setup.rows["dev"]
    output = compute_logits(
        model, features, device=execution.device, precision=execution.precision.context
    )
    untuned = model.task.decode(output.logits, features, job.dev)
    model.task = model.task.tuned(job.dev, untuned)
    predicted = model.task.decode(output.logits, features, job.dev)
    if not model.frozen:
        restore_embeddings(model.transformer)

    def save(out: Path) -> None:
        save_task_model(
            model,
            setup.tokenizer,
            out,
            recipe=job.recipe,
            tables=setup.tables,
            rows=job.train,
            spec=job.spec,
            enrichment=setup.enrichment,
        )

    finish_folder(job.out, save, execution.ranks)
    return FinetuneResult(
        outcome=outcome,
        steps=steps,
        model=model,
        tokenizer=setup.tokenizer,
        dev_figures=score(model.task, job.dev, predicted),
        dev_predictions=predicted,
        enrichment=setup.enrichment,
    )


def facts(job: FinetuneJob, execution: Execution, loss: Loss | None = None) -> dict[str, Fact]:
    """What a checkpoint records of a job besides what the loop records: see `Run`."""
    return {
        **recorded(job.recipe, without=LEFT_OUT),
        "task": job.task,
        "model": job.model,
        "data.train": _digest(job.train, job.recipe),
        "data.dev": _digest(job.dev, job.recipe),
        **enrichment_facts(job.recipe),
        "precision": execution.precision.name,
        **({} if loss is None else {"loss.own": getattr(loss, "__qualname__", repr(loss))}),
    }


def _digest(examples: Sequence[Example], recipe: FinetuneRecipe) -> str:
    """Of all that is read of the rows."""
    return json_digest(
        {"rows": [[*e.texts, repr(e.target), *extra_cells(e, recipe)] for e in examples]}
    )
