"""Sentence training from rows of texts to a sentence model folder; the same call again resumes."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from bertsmith.errors import ConfigError
from bertsmith.files.atomic_folder import result_folder
from bertsmith.files.digest import json_digest
from bertsmith.folders.read import LoadedFolder, load_model
from bertsmith.folders.write import save_model
from bertsmith.labeled.pairs.pairs import SentenceData
from bertsmith.metrics import better
from bertsmith.models.surgery import whole_model
from bertsmith.sentences.train.dev import dev_scores
from bertsmith.sentences.train.encoding import TextEncoder
from bertsmith.sentences.train.model import SentenceModel, build_sentence_model, sentence_settings
from bertsmith.sentences.train.recipe import SentenceRecipe
from bertsmith.sentences.train.rows import training_rows
from bertsmith.sentences.train.workload import EncodedRows, SentenceWorkload
from bertsmith.text.encoding import Ints
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.training.checkpoints.checkpoint import finish_folder
from bertsmith.training.checkpoints.resume import Fact, recorded
from bertsmith.training.default_rate import by_width
from bertsmith.training.embedding_subset import restore_embeddings, use_embedding_subset
from bertsmith.training.execution.execution import Execution
from bertsmith.training.execution.ranks import refuse_sharding
from bertsmith.training.loop.evaluate import Evaluation, EvaluationSettings
from bertsmith.training.loop.loop import train
from bertsmith.training.loop.progress import Watcher
from bertsmith.training.loop.run import Outcome, Run

# The loop records the optimizer itself; the others change nothing that is learned.
LEFT_OUT = ("about", "optimizer", "averaging", "save", "run")


log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceJob:
    """What is to be learned, from what, and where the result goes: nowhere if `out` is None.

    The recipe's objective must be set (`with_objective`). Without `dev` rows the last weights are
    taken; with them the best ones, those of the start among them.
    """

    recipe: SentenceRecipe
    model: str
    train: SentenceData
    dev: SentenceData | None = None
    out: Path | None = None
    accept: Collection[str] = ()

    @property
    def folder(self) -> Path:
        """Where the result goes, for what cannot be done in memory."""
        if self.out is None:
            raise ConfigError("this run has no folder; give `out`")
        return self.out


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceResult:
    """The result: `model` is None when the run was stopped before its end.

    `dev_figures` are those of the saved weights, None without dev rows, too.
    """

    outcome: Outcome
    model: SentenceModel | None = None
    tokenizer: Tokenizer | None = None
    model_type: str | None = None  # as the folder of the start names it
    dev_figures: dict[str, float] | None = None
    notes: tuple[str, ...] = ()  # what became of the rows


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prepared:
    """What is built from a job before its first step."""

    loaded: LoadedFolder
    model: SentenceModel
    rows: EncodedRows
    dev: dict[str, Ints]  # tokens of each dev text
    notes: tuple[str, ...]
    classes: tuple[str, ...]


def train_sentences(
    job: SentenceJob, *, execution: Execution | None = None, watch: Watcher | None = None
) -> SentenceResult:
    """Train, or resume training, and write the model folder with the best weights."""
    execution = execution or Execution()
    refuse_sharding(execution.ranks, "sentence training")
    prepared = _prepare(job, execution)
    run = _run(job, prepared, execution, watch)
    outcome = train(run)
    if outcome.status != "finished":
        return SentenceResult(outcome=outcome)
    restore_embeddings(prepared.model.model)
    result = SentenceResult(
        outcome=outcome,
        model=prepared.model.eval(),
        tokenizer=prepared.loaded.tokenizer,
        model_type=prepared.loaded.folder.config.get("model_type"),
        dev_figures=None if outcome.evaluation is None else dict(outcome.evaluation.figures),
        notes=prepared.notes,
    )
    finish_folder(job.out, lambda out: save_sentences(result, out), execution.ranks)
    return result


def _prepare(job: SentenceJob, execution: Execution) -> _Prepared:
    recipe = job.recipe
    if recipe.objective is None:
        raise ConfigError("the objective is not decided; set objective.kind")
    loaded = load_model(job.model)
    rows = training_rows(
        job.train,
        recipe.objective.kind,
        positive=recipe.data.positive,
        bounds=recipe.data.range,
    )
    model = build_sentence_model(
        recipe, loaded, classes=len(rows.classes), device=execution.device.type
    )
    limits = (recipe.vector.max_length, loaded.model.spec.longest, loaded.sentence.max_length)
    encoder = TextEncoder(
        loaded.tokenizer,
        sentence_settings(recipe, loaded),
        min(limit for limit in limits if limit is not None),
    )
    model.prompt_rows = encoder.prompt_rows
    encoded = encoder.rows(rows)
    notes = [*rows.notes]
    if encoder.cut:
        notes.append(
            f"{encoder.cut:,} of {encoder.texts:,} texts are longer than "
            f"{recipe.vector.max_length} tokens and are cut in training"
        )
        if execution.ranks.is_first:
            log.warning("%s", notes[-1])
    texts = [] if job.dev is None else job.dev.texts()
    dev = dict(zip(texts, encoder.ids(texts), strict=True))
    use_embedding_subset(model.model, [*encoded.texts, *dev.values()])
    execution.prepare(model)
    return _Prepared(
        loaded=loaded,
        model=model,
        rows=encoded,
        dev=dev,
        notes=tuple(notes),
        classes=rows.classes,
    )


def _run(job: SentenceJob, prepared: _Prepared, execution: Execution, watch: Watcher | None) -> Run:
    recipe, model = job.recipe, prepared.model
    schedule = recipe.plan.schedule(len(prepared.rows.rows))
    workload = SentenceWorkload(
        prepared.rows,
        across=model.objective.across,
        batch=recipe.plan.batch,
        micro_tokens=recipe.plan.micro_tokens,
        seed=recipe.run.seed,
        ranks=execution.ranks,
    )
    rate = recipe.optimizer.lr or by_width(model.model.spec.hidden)
    return Run(
        folder=job.out,
        model=model,
        workload=workload,
        schedule=schedule,
        optimizer=recipe.optimizer.at(rate),
        save=recipe.save,
        evaluation=EvaluationSettings(held_out=0.0, every=recipe.plan.every(schedule.steps)),
        averaging=recipe.averaging,
        seed=recipe.run.seed,
        facts=facts(job, execution),
        accept=frozenset(job.accept),
        execution=execution,
        watch=watch,
        evaluate=None if job.dev is None else lambda: _evaluate(job, prepared, execution),
        evaluate_start=job.dev is not None,
        best=recipe.best if job.dev is not None else None,
        better=better,
    )


def _evaluate(job: SentenceJob, prepared: _Prepared, execution: Execution) -> Evaluation:
    """Figures of the dev rows."""
    if job.dev is None:
        raise ConfigError("there are no dev rows")
    scores = dev_scores(
        job.dev,
        prepared.model,
        prepared.dev,
        execution,
        classes=prepared.classes,
        positive=job.recipe.data.positive,
    )
    return Evaluation(losses={}, accuracy={}, counts={}, total=0.0, figures=scores.figures)


def save_sentences(result: SentenceResult, out: Path) -> None:
    """Put the model folder into `out`."""
    model, tokenizer = result.model, result.tokenizer
    if model is None or tokenizer is None:
        raise ConfigError(f"{out}: training was stopped before its end; there is no model to save")
    with result_folder(out) as staging:
        save_model(
            whole_model(model.model),
            tokenizer,
            staging,
            sentence=model.learned_settings(),
            model_type=result.model_type,
        )


def facts(job: SentenceJob, execution: Execution) -> dict[str, Fact]:
    """What a checkpoint records of a job besides what the loop records: see `Run`."""
    return {
        **recorded(job.recipe, without=LEFT_OUT),
        "model": job.model,
        "data.train": _digest(job.train),
        "data.dev": None if job.dev is None else _digest(job.dev),
        "precision": execution.precision.name,
    }


def _digest(data: SentenceData) -> str:
    """Of all that is read of the rows."""
    targets = None if data.targets is None else data.targets.tolist()
    return json_digest(
        {"kind": data.kind, "rows": [list(row) for row in data.rows], "targets": targets}
    )
