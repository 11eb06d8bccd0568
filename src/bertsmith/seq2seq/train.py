"""Training to write, from pairs of texts to a model folder; the same call again resumes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bertsmith.errors import ConfigError
from bertsmith.files.atomic_folder import result_folder
from bertsmith.files.digest import json_digest
from bertsmith.folders.extras import PAIRS_KEY, Extras
from bertsmith.folders.generation import (
    GenerationDefaults,
    Writes,
    generation_extras,
    read_generation,
    read_writes,
)
from bertsmith.folders.read import LoadedFolder, load_model
from bertsmith.folders.write import save_model
from bertsmith.labeled.pairs.splits import PairSplits, evenly
from bertsmith.metrics import better
from bertsmith.metrics.written_text import WRITTEN
from bertsmith.models.build import Model
from bertsmith.models.sentence_spec import SentenceSettings
from bertsmith.models.surgery import whole_model
from bertsmith.seq2seq.model import build_writing_model
from bertsmith.seq2seq.recipe import WriteRecipe
from bertsmith.seq2seq.similarity import SIMILARITY, BothDirections, SimilarWorkload
from bertsmith.seq2seq.workload import WritingWorkload
from bertsmith.seq2seq.written import model_texts
from bertsmith.tasks.write.arrange import Arrangement, arrangement_of, chosen_writes
from bertsmith.tasks.write.encoding import (
    EncodedPairs,
    PairEncoder,
    WritingLengths,
    unigram_entropy,
)
from bertsmith.training.checkpoints.checkpoint import finish_folder
from bertsmith.training.checkpoints.resume import Fact, recorded
from bertsmith.training.default_rate import by_width
from bertsmith.training.execution.execution import Execution
from bertsmith.training.execution.ranks import refuse_sharding
from bertsmith.training.loop.evaluate import Evaluation, EvaluationSettings, evaluate_losses
from bertsmith.training.loop.loop import train
from bertsmith.training.loop.progress import Watcher
from bertsmith.training.loop.run import Outcome, Run

# The loop records the optimizer itself; the others change nothing that is learned.
LEFT_OUT = ("about", "optimizer", "averaging", "save", "run")
SHIFT = "shift"


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteJob:
    """What is to be learned, from what, and where the result goes: nowhere if `out` is None.

    A recipe with a section `similarity` trains similar sentences, others training targets alone.
    """

    recipe: WriteRecipe
    task: str
    model: str
    splits: PairSplits
    out: Path | None = None
    accept: Collection[str] = ()

    @property
    def folder(self) -> Path:
        """Where the result goes, for what cannot be done in memory."""
        if self.out is None:
            raise ConfigError("this run has no folder; give `out`")
        return self.out


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteResult:
    """The result: `model` is None when the run was stopped before its end.

    `usual` are the losses of a model that does not look at the texts: the entropy of single target
    tokens, and the log of the candidates for similar sentences.
    """

    outcome: Outcome
    model: Model | None = None
    usual: dict[str, float]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prepared:
    """What is built from a job before its first step."""

    loaded: LoadedFolder
    model: Model
    writes: Writes
    lengths: WritingLengths
    defaults: GenerationDefaults
    workload: WritingWorkload | SimilarWorkload
    usual: dict[str, float]
    notes: tuple[str, ...]


def train_to_write(
    job: WriteJob, *, execution: Execution | None = None, watch: Watcher | None = None
) -> WriteResult:
    """Train, or resume training, and write the model folder with the best weights."""
    execution = execution or Execution()
    refuse_sharding(execution.ranks, "training to write")
    prepared = _prepare(job, execution)
    outcome = train(_run(job, prepared, execution, watch))
    if outcome.status != "finished":
        return WriteResult(outcome=outcome, usual=prepared.usual)
    finish_folder(job.out, lambda out: _save(job, prepared, out), execution.ranks)
    return WriteResult(
        outcome=outcome,
        model=prepared.model.eval(),
        usual=prepared.usual,
        notes=prepared.notes,
    )


def _prepare(job: WriteJob, execution: Execution) -> _Prepared:
    recipe = job.recipe
    loaded = load_model(job.model)
    model = build_writing_model(recipe, loaded, device=execution.device.type)
    similar = recipe.similarity is not None
    if similar and (model.spec.decoder is not None or model.spec.sees == "before"):
        raise ConfigError(
            f"{job.model} is no bidirectional encoder: the vector of a sentence is its first row, "
            "which must see all of it; give a BERT model"
        )
    writes = chosen_writes(
        model.spec,
        read_writes(loaded.folder.parts.transformer),
        SHIFT if similar else recipe.writing.by,
        usual="mask",
        folder=job.model,
    )
    encoder = PairEncoder(loaded.tokenizer, model.spec)
    arrangement = arrangement_of(model.spec, loaded.tokenizer, writes, share=recipe.writing.hidden)
    build = _similar_workload if similar else _writing_workload
    workload, lengths, usual, notes = build(job, encoder, arrangement, execution)
    execution.prepare(model)
    return _Prepared(
        loaded=loaded,
        model=model,
        writes=writes,
        lengths=lengths,
        defaults=_defaults(loaded, lengths, encoder.end),
        workload=workload,
        usual=usual,
        notes=tuple(notes),
    )


def _writing_workload(
    job: WriteJob, encoder: PairEncoder, arrangement: Arrangement, execution: Execution
) -> tuple[WritingWorkload, WritingLengths, dict[str, float], list[str]]:
    recipe, splits = job.recipe, job.splits
    lengths = encoder.lengths(splits.sides(), recipe.length.max_length)
    train_rows, dev_rows = (encoder.encode(one, lengths) for one in (splits.train, splits.dev))
    notes = [
        f"sources have at most {lengths.source} tokens, targets at most {lengths.target}",
        *_cut_notes(splits.train.source, train_rows, lengths),
    ]
    workload = WritingWorkload(
        arrangement,
        train_rows,
        dev_rows,
        plan=recipe.plan,
        smoothing=recipe.writing.smoothing,
        seed=recipe.run.seed,
        ranks=execution.ranks,
    )
    return workload, lengths, {"writing": unigram_entropy(train_rows.targets)}, notes


def _cut_notes(source: str, rows: EncodedPairs, lengths: WritingLengths) -> list[str]:
    if not rows.cut_rows:
        return []
    return [
        f"{rows.cut_rows:,} of {len(rows):,} sources of {source} are longer than {lengths.source} "
        f"tokens: their ends, {sum(rows.cut):,} tokens, are not read; --max-length makes room"
    ]


def _similar_workload(
    job: WriteJob, encoder: PairEncoder, arrangement: Arrangement, execution: Execution
) -> tuple[SimilarWorkload, WritingLengths, dict[str, float], list[str]]:
    recipe, splits = job.recipe, job.splits
    if recipe.similarity is None:
        raise ConfigError("the recipe has no section similarity")
    limit = recipe.length.max_length // 2
    notes = [f"each text has at most {limit} tokens"]
    sides = []
    for data in (splits.train, splits.dev):
        distinct = data.texts()
        number = {text: at for at, text in enumerate(distinct)}
        sources, cut = encoder.sources(distinct, limit)
        whole = [row for row in data.rows if not any(cut[number[text]] for text in row)]
        if len(whole) < len(data):
            left = len(data) - len(whole)
            notes.append(
                f"{left:,} of {len(data):,} pairs of {data.source} have a text of more than "
                f"{limit} tokens and are left out; --max-length {2 * limit} makes room for two"
            )
        if not whole:
            raise ConfigError(f"{data.source}: no pair fits; raise --max-length")
        pairs = np.array([[number[text] for text in row] for row in whole], dtype=np.int64)
        sides.append(BothDirections.of(sources, encoder.targets(distinct), pairs))
    workload = SimilarWorkload(
        arrangement,
        *sides,
        settings=recipe.similarity,
        plan=recipe.plan,
        smoothing=recipe.writing.smoothing,
        seed=recipe.run.seed,
        ranks=execution.ranks,
    )
    usual = {
        "writing": unigram_entropy(sides[0].rows.targets),
        SIMILARITY: workload.usual_loss(),
    }
    return workload, WritingLengths(source=limit, target=limit), usual, notes


def _defaults(loaded: LoadedFolder, lengths: WritingLengths, end: int) -> GenerationDefaults:
    """The control tokens of the folder; what else it says was made for other texts."""
    own = read_generation(loaded.folder)
    return GenerationDefaults(
        start=own.start,
        ends=own.ends or (end,),
        bos=own.bos,
        pad=own.pad,
        max_new=lengths.target,
    )


def _run(job: WriteJob, prepared: _Prepared, execution: Execution, watch: Watcher | None) -> Run:
    recipe = job.recipe
    rows = len(job.splits.train)
    schedule = recipe.plan.schedule(rows)
    rate = recipe.optimizer.lr or by_width(prepared.model.spec.hidden)
    return Run(
        folder=job.out,
        model=prepared.model,
        workload=prepared.workload,
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
        evaluate=lambda: _evaluate(job, prepared, execution),
        evaluate_start=True,
        best=recipe.best,
        better=better,
    )


def _evaluate(job: WriteJob, prepared: _Prepared, execution: Execution) -> Evaluation:
    """The loss of the dev rows; where a figure of written text decides, those of some rows."""
    losses = evaluate_losses(prepared.model, prepared.workload, execution)
    if losses is None:
        raise ConfigError("there are no dev rows to choose the best weights by")
    figures = {"loss": losses.total}
    if SIMILARITY in losses.accuracy:
        figures["neighbor_accuracy"] = losses.accuracy[SIMILARITY]
    wanted = job.recipe.best.figure
    if wanted is not None and wanted not in figures and job.recipe.similarity is None:
        rows = evenly(job.splits.dev, job.recipe.dev.rows).rows
        written = model_texts(
            prepared.model,
            prepared.loaded.tokenizer,
            [row[0] for row in rows],
            writes=prepared.writes,
            defaults=prepared.defaults,
            lengths=prepared.lengths,
        )
        figures |= WRITTEN.score([row[1] for row in rows], written)
    return replace(losses, figures=figures)


def _save(job: WriteJob, prepared: _Prepared, out: Path) -> None:
    """Put the model folder into `out`."""
    spec = prepared.model.spec
    bidirectional = spec.decoder is None and spec.sees == "all"
    section: dict[str, Any] = {
        "task": job.task,
        "source_tokens": prepared.lengths.source,
        "target_tokens": prepared.lengths.target,
    }
    extras = Extras(json={PAIRS_KEY: section}) | generation_extras(
        prepared.defaults, prepared.writes if bidirectional else None
    )
    similar = job.recipe.similarity is not None
    with result_folder(out) as staging:
        save_model(
            whole_model(prepared.model),
            prepared.loaded.tokenizer,
            staging,
            sentence=SentenceSettings(pooling=("first",)) if similar else None,
            model_type=prepared.loaded.folder.config.get("model_type"),
            extras=extras,
        )


def facts(job: WriteJob, execution: Execution) -> dict[str, Fact]:
    """What a checkpoint records of a job besides what the loop records: see `Run`."""
    return {
        **recorded(job.recipe, without=LEFT_OUT),
        "task": job.task,
        "model": job.model,
        "data.train": json_digest({"rows": [list(row) for row in job.splits.train.rows]}),
        "data.dev": json_digest({"rows": [list(row) for row in job.splits.dev.rows]}),
        "precision": execution.precision.name,
    }
