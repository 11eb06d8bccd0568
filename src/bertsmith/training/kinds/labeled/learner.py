"""What learns from labeled rows: from a job to a task model with its dev figures."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bertsmith.errors import ConfigError
from bertsmith.files.digest import json_digest
from bertsmith.folders.encoders import load_encoder
from bertsmith.labeled.example import Example
from bertsmith.tasks.enrichment.enrichment import Enrichment
from bertsmith.tasks.feature import Feature
from bertsmith.tasks.inference import compute_logits
from bertsmith.tasks.kinds import task_from_data, task_kind
from bertsmith.tasks.model.columns import (
    Auxiliary,
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
from bertsmith.training.checkpoints.checkpoint import CHECKPOINTS, Checkpoints
from bertsmith.training.checkpoints.resume import Fact
from bertsmith.training.default_rate import by_size, by_width
from bertsmith.training.embedding_subset import restore_embeddings, use_embedding_subset
from bertsmith.training.execution.execution import Execution
from bertsmith.training.kinds.labeled.encoder_cache import (
    EncoderCache,
    cache_vectors,
    encode_passages,
    standardize_mix,
)
from bertsmith.training.kinds.labeled.encoder_recipe import fit_recipe
from bertsmith.training.kinds.labeled.enrichment import (
    enrichment_facts,
    extra_cells,
    recipe_enrichment,
)
from bertsmith.training.kinds.labeled.model import build_task_model, save_task_model
from bertsmith.training.kinds.labeled.recipe import FinetuneRecipe
from bertsmith.training.kinds.labeled.rows import LabeledRows
from bertsmith.training.kinds.labeled.workload import PART, FinetuneWorkload, Regularizers
from bertsmith.training.learner import (
    Learner,
    LoopInputs,
    Prepared,
    Trained,
    TrainingJob,
    job_facts,
    run_job,
)
from bertsmith.training.loop.evaluate import Evaluation
from bertsmith.training.loop.progress import Watcher
from bertsmith.training.loop.run import Outcome
from bertsmith.training.loop.schedule import LinearSettings

FinetuneJob = TrainingJob[FinetuneRecipe, LabeledRows]
HEAD_ALONE = 1e-3  # the rate where a head's input changes while it learns, so no size is known
SAMPLE = 64  # rows whose vectors are measured


@dataclass(frozen=True, slots=True, kw_only=True)
class FinetunedTask:
    """The trained model: metrics and predictions of the development rows, thresholds tuned on them.

    `job` is the job with what its recipe leaves to the encoder filled in.
    """

    job: FinetuneJob
    model: TaskModel
    tokenizer: FieldEncoder
    figures: dict[str, float]
    predictions: Sequence[Prediction]
    enrichment: Enrichment | None
    notes: tuple[str, ...] = ()

    def save(self, out: Path) -> None:
        """Put the model folder into `out`."""
        rows = self.job.rows
        save_task_model(
            self.model,
            self.tokenizer,
            out,
            recipe=self.job.recipe,
            tables=meta_tables(rows.train, self.job.recipe.head.meta),
            rows=rows.train,
            spec=rows.spec,
            enrichment=self.enrichment,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Built:
    """What is built from a job before its first step."""

    job: FinetuneJob
    model: TaskModel
    tokenizer: FieldEncoder
    columns: Sequence[Auxiliary]
    enrichment: Enrichment | None
    regularizers: Regularizers
    features: dict[str, list[Feature]]  # of train and dev


def labeled_learner(
    *, loss: Loss | None = None, cache: EncoderCache | None = None
) -> Learner[FinetuneJob, _Built, FinetunedTask]:
    """What learns from labeled rows.

    `loss` takes the place of the task's own: logits and their batch -> LossSum, whose count is
    `task.count(batch)`. Jobs that differ in nothing but their seed may share a `cache`: a frozen
    encoder then reads the rows once for all of them.
    """
    return Learner(
        name="fine-tuning",
        facts=lambda job, execution: labeled_facts(_fitted(job), execution, loss),
        prepare=lambda job, execution, watch: _prepare(
            _fitted(job), execution, watch, loss=loss, cache=cache
        ),
        finish=_finish,
    )


def finetune(
    job: FinetuneJob,
    *,
    execution: Execution | None = None,
    watch: Watcher | None = None,
    loss: Loss | None = None,
) -> Trained[FinetunedTask]:
    """Train, or resume training, and write the model folder with the best weights."""
    return run_job(labeled_learner(loss=loss), job, execution=execution, watch=watch)


def _fitted(job: FinetuneJob) -> FinetuneJob:
    return replace(job, recipe=fit_recipe(job.recipe, job.model))


def _prepare(
    job: FinetuneJob,
    execution: Execution,
    watch: Watcher | None,
    *,
    loss: Loss | None,
    cache: EncoderCache | None,
) -> Prepared[_Built] | Outcome:
    _check(job)
    recipe = job.recipe
    made = _build(job, execution)
    steps = max(1, round(len(job.rows.train) / recipe.plan.batch * recipe.plan.epochs))
    began = time.monotonic()
    train = made.features["train"]
    rate = recipe.optimizer.lr or _default_rate(made.model, train, execution)
    standardize_mix(made.model, train, execution)
    caches = made.model.keeps_vectors or made.model.keeps_layers
    if caches and not _is_trained(job, steps):
        features = cache_vectors(
            made.model, made.features, execution=execution, watch=watch, cache=cache
        )
        if features is None:
            return _stopped(job, execution, time.monotonic() - began)
        made = replace(made, features=features)
    spent = time.monotonic() - began
    return Prepared(inputs=_inputs(made, execution, steps, rate, spent, loss), made=made)


def _build(job: FinetuneJob, execution: Execution) -> _Built:
    recipe, rows = job.recipe, job.rows
    task = job_task(job)
    tables = meta_tables(rows.train, recipe.head.meta)
    columns = auxiliary_from(rows.train, recipe.auxiliary, task)
    enrichment = recipe_enrichment(recipe, task, rows.train, device=execution.device.type)
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
    features = _features(rows, model, read, regularizers)
    execution.prepare(model)
    return _Built(
        job=job,
        model=model,
        tokenizer=tokenizer,
        columns=columns,
        enrichment=enrichment,
        regularizers=regularizers,
        features=features,
    )


def _default_rate(model: TaskModel, features: Sequence[Feature], execution: Execution) -> float:
    """By the width of the model; if its encoder is frozen, by the size of what the head reads."""
    if not model.frozen:
        return by_width(model.model.spec.hidden)
    learns_below = any(weight.requires_grad for weight in model.model.encoder.parameters())
    if learns_below or not model.keeps_vectors:
        return HEAD_ALONE
    rate = by_size(encode_passages(model, features[:SAMPLE], execution))
    # All ranks must have the same, and their last bits need not agree.
    return execution.ranks.sum_counts({"rate": rate if execution.ranks.is_first else 0.0})["rate"]


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


def _inputs(
    made: _Built,
    execution: Execution,
    steps: int,
    rate: float,
    spent: float,
    loss: Loss | None,
) -> LoopInputs:
    model, rows, recipe = made.model, made.job.rows, made.job.recipe
    workload = FinetuneWorkload(
        model.task,
        with_auxiliary(made.features["train"], rows.train, made.columns),
        plan=recipe.plan,
        seed=recipe.run.seed,
        ranks=execution.ranks,
        loss=loss,
        auxiliary=made.columns,
        regularizers=made.regularizers,
    )
    inputs = LoopInputs.of_recipe(
        recipe,
        model,
        workload,
        schedule=LinearSettings(steps=steps, warmup=recipe.plan.warmup),
        rate=rate,
        every=max(1, round(workload.steps_per_epoch / recipe.plan.evaluations)),
        evaluate=lambda: _evaluate(model, made.features["dev"], rows.dev, execution, loss),
    )
    # A head at random has nothing to say yet.
    return replace(inputs, evaluate_start=False, spent=spent)


def job_task(job: FinetuneJob) -> Task:
    """The task of a job's labeled rows, as its recipe and language shape it."""
    recipe = job.recipe
    options = TaskOptions(
        loss=recipe.loss,
        settings=recipe.task,
        pair=recipe.encoder.pair,
        language=job.rows.language,
    )
    return task_from_data(task_kind(job.task), [*job.rows.train, *job.rows.known], options)


def _regularizers(job: FinetuneJob, tokenizer: FieldEncoder) -> Regularizers:
    wanted, seed = job.recipe.regularization, job.recipe.run.seed
    return Regularizers(
        token_dropout=TokenDropout.of(wanted.token_dropout, tokenizer, seed),
        r_drop=RDrop.of(wanted.r_drop, job.task),
    )


def _features(
    labeled: LabeledRows,
    model: TaskModel,
    reading: TaskReading,
    regularizers: Regularizers,
) -> dict[str, list[Feature]]:
    """The passages of both sets of rows; the model trains the embeddings of their tokens alone."""
    rows = {
        name: reading.features(model.task, some)
        for name, some in (("train", labeled.train), ("dev", labeled.dev))
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


def _check(job: FinetuneJob) -> None:
    """Refuse what cannot be done before time goes into it."""
    if not job.rows.dev:
        raise ConfigError("there are no development rows to choose the best weights by")
    RDrop.of(job.recipe.regularization.r_drop, job.task)


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


def _finish(_: FinetuneJob, made: _Built, outcome: Outcome, execution: Execution) -> FinetunedTask:
    """Tune thresholds on the development rows."""
    model, features, dev = made.model, made.features["dev"], made.job.rows.dev
    output = compute_logits(
        model, features, device=execution.device, precision=execution.precision.context
    )
    untuned = model.task.decode(output.logits, features, dev)
    model.task = model.task.tuned(dev, untuned)
    predicted = model.task.decode(output.logits, features, dev)
    if not model.frozen:
        restore_embeddings(model.transformer)
    return FinetunedTask(
        job=made.job,
        model=model,
        tokenizer=made.tokenizer,
        figures=score(model.task, dev, predicted),
        predictions=predicted,
        enrichment=made.enrichment,
    )


def labeled_facts(
    job: FinetuneJob, execution: Execution, loss: Loss | None = None
) -> dict[str, Fact]:
    """All that decides the result of a job: its recipe as it stands, model, rows, enrichment."""
    own = {} if loss is None else {"loss.own": getattr(loss, "__qualname__", repr(loss))}
    return job_facts(
        job,
        execution,
        {
            "data.train": _digest(job.rows.train, job.recipe),
            "data.dev": _digest(job.rows.dev, job.recipe),
            **enrichment_facts(job.recipe),
            **own,
        },
    )


def _digest(examples: Sequence[Example], recipe: FinetuneRecipe) -> str:
    """Of all that is read of the rows."""
    return json_digest(
        {"rows": [[*e.texts, repr(e.target), *extra_cells(e, recipe)] for e in examples]}
    )
