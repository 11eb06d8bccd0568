"""What learns to write: from pairs of texts to a model that writes a text for a text."""

from __future__ import annotations

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
from bertsmith.metrics.written_text import WRITTEN
from bertsmith.models.build import Model
from bertsmith.models.sentence_spec import SentenceSettings
from bertsmith.models.surgery import whole_model
from bertsmith.tasks.write.arrange import Arrangement, arrangement_of, chosen_writes
from bertsmith.tasks.write.encoding import (
    EncodedPairs,
    PairEncoder,
    WritingLengths,
    unigram_entropy,
)
from bertsmith.training.checkpoints.resume import Fact
from bertsmith.training.default_rate import by_width
from bertsmith.training.execution.execution import Execution
from bertsmith.training.kinds.write.recipe import WriteRecipe
from bertsmith.training.kinds.write.similarity import SIMILARITY, BothDirections, SimilarWorkload
from bertsmith.training.kinds.write.workload import WritingWorkload
from bertsmith.training.kinds.write.written import model_texts
from bertsmith.training.learner import Learner, LoopInputs, Prepared, TrainingJob, job_facts
from bertsmith.training.loop.evaluate import Evaluation, evaluate_losses
from bertsmith.training.loop.run import Outcome
from bertsmith.training.trainable import trainable

WriteJob = TrainingJob[WriteRecipe, PairSplits]
"""Similar sentences if its recipe has a section `similarity`, else targets of sources."""
HEADS = ("masked_lm", "language_model")
SHIFT = "shift"


@dataclass(frozen=True, slots=True, kw_only=True)
class WritingModel:
    """What is built from a job before its first step, and trained.

    `usual` are the losses of a model that does not look at the texts: the entropy of single target
    tokens, and the log of the candidates for similar sentences.
    """

    job: WriteJob
    loaded: LoadedFolder
    model: Model
    writes: Writes
    lengths: WritingLengths
    defaults: GenerationDefaults
    workload: WritingWorkload | SimilarWorkload
    usual: dict[str, float]
    notes: tuple[str, ...]

    def save(self, out: Path) -> None:
        """Put the model folder into `out`."""
        spec = self.model.spec
        bidirectional = spec.decoder is None and spec.sees == "all"
        section: dict[str, Any] = {
            "task": self.job.task,
            "source_tokens": self.lengths.source,
            "target_tokens": self.lengths.target,
        }
        extras = Extras(json={PAIRS_KEY: section}) | generation_extras(
            self.defaults, self.writes if bidirectional else None
        )
        similar = self.job.recipe.similarity is not None
        with result_folder(out) as staging:
            save_model(
                whole_model(self.model),
                self.loaded.tokenizer,
                staging,
                sentence=SentenceSettings(pooling=("first",)) if similar else None,
                model_type=self.loaded.folder.config.get("model_type"),
                extras=extras,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedWriter:
    """A model that writes, with the figures that its best weights were chosen by."""

    writing: WritingModel
    figures: dict[str, float] | None

    @property
    def model(self) -> Model:
        """The model, in evaluation mode."""
        return self.writing.model

    @property
    def notes(self) -> tuple[str, ...]:
        """What became of the rows."""
        return self.writing.notes

    def save(self, out: Path) -> None:
        """Put the model folder into `out`."""
        self.writing.save(out)


def write_learner() -> Learner[WriteJob, WritingModel, FinishedWriter]:
    """What learns to write from pairs of texts."""
    return Learner(
        name="training to write",
        facts=_facts,
        prepare=lambda job, execution, _: prepare_writing(job, execution),
        finish=_finish,
    )


def prepare_writing(job: WriteJob, execution: Execution) -> Prepared[WritingModel]:
    """The model of a job, and what the loop trains it on."""
    recipe = job.recipe
    made = _build(job, execution)
    schedule = recipe.plan.schedule(len(job.rows.train) / recipe.plan.batch)
    inputs = LoopInputs.of_recipe(
        recipe,
        made.model,
        made.workload,
        schedule=schedule,
        rate=by_width(made.model.spec.hidden),
        every=recipe.plan.every(schedule.steps),
        evaluate=lambda: _evaluate(made, execution),
    )
    return Prepared(inputs=inputs, made=made)


def _build(job: WriteJob, execution: Execution) -> WritingModel:
    recipe = job.recipe
    loaded = load_model(job.model)
    model = _model(recipe, loaded, device=execution.device.type)
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
    return WritingModel(
        job=job,
        loaded=loaded,
        model=model,
        writes=writes,
        lengths=lengths,
        defaults=_defaults(loaded, lengths, encoder.end),
        workload=workload,
        usual=usual,
        notes=tuple(notes),
    )


def _model(recipe: WriteRecipe, loaded: LoadedFolder, *, device: str) -> Model:
    """The module to train, with one head over the vocabulary."""
    source = loaded.model
    heads = [head for head in source.head_specs if head.kind in HEADS]
    if not heads:
        own = ", ".join(head.kind for head in source.head_specs) or "none"
        raise ConfigError(
            f"{loaded.folder.path} has no head over the vocabulary (its heads: {own}), so it "
            "cannot learn to write; give the folder of a pre-trained model, or pre-train one with "
            "`bertsmith pretrain`"
        )
    return trainable(source, heads[:1], recipe.encoder, device=device)


def _writing_workload(
    job: WriteJob, encoder: PairEncoder, arrangement: Arrangement, execution: Execution
) -> tuple[WritingWorkload, WritingLengths, dict[str, float], list[str]]:
    recipe, splits = job.recipe, job.rows
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
    recipe, splits = job.recipe, job.rows
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


def _evaluate(prepared: WritingModel, execution: Execution) -> Evaluation:
    """The loss of the dev rows; where a figure of written text decides, those of some rows."""
    job = prepared.job
    losses = evaluate_losses(prepared.model, prepared.workload, execution)
    if losses is None:
        raise ConfigError("there are no dev rows to choose the best weights by")
    figures = {"loss": losses.total}
    if SIMILARITY in losses.accuracy:
        figures["neighbor_accuracy"] = losses.accuracy[SIMILARITY]
    wanted = job.recipe.best.figure
    if wanted is not None and wanted not in figures and job.recipe.similarity is None:
        rows = evenly(job.rows.dev, job.recipe.dev.rows).rows
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


def _finish(_: WriteJob, made: WritingModel, outcome: Outcome, __: Execution) -> FinishedWriter:
    made.model.eval()
    chosen = outcome.evaluation
    return FinishedWriter(writing=made, figures=None if chosen is None else dict(chosen.figures))


def _facts(job: WriteJob, execution: Execution) -> dict[str, Fact]:
    sides = {"data.train": job.rows.train, "data.dev": job.rows.dev}
    digests = {
        name: json_digest({"rows": [list(row) for row in data.rows]})
        for name, data in sides.items()
    }
    return job_facts(job, execution, digests)
