"""Sentence training from rows of texts to a sentence model folder; the same call again resumes."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from bertsmith.errors import ConfigError
from bertsmith.files.atomic_folder import result_folder
from bertsmith.files.digest import json_digest
from bertsmith.folders.read import LoadedFolder, load_model
from bertsmith.folders.write import save_model
from bertsmith.labeled.pairs.pairs import SentenceData
from bertsmith.models.surgery import whole_model
from bertsmith.sentences.train.dev import dev_scores
from bertsmith.sentences.train.encoding import TextEncoder
from bertsmith.sentences.train.model import SentenceModel, build_sentence_model, sentence_settings
from bertsmith.sentences.train.recipe import SentenceRecipe
from bertsmith.sentences.train.rows import training_rows
from bertsmith.sentences.train.workload import EncodedRows, SentenceWorkload
from bertsmith.text.encoding import Ints
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.training.checkpoints.resume import Fact
from bertsmith.training.default_rate import by_width
from bertsmith.training.embedding_subset import restore_embeddings, use_embedding_subset
from bertsmith.training.execution.execution import Execution
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

SENTENCES = "sentences"  # the name of this kind of training, and of its only task

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceSplits:
    """The rows of each split.

    Without `dev` rows the last weights are taken; with them the best ones, those of the start
    among them. `test` rows are evaluated at the end.
    """

    train: SentenceData
    dev: SentenceData | None = None
    test: SentenceData | None = None


SentenceJob = TrainingJob[SentenceRecipe, SentenceSplits]
"""What is to be learned, from what; the recipe's objective must be set (`with_objective`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedSentences:
    """The trained model; `figures` are those of the dev rows by the saved weights.

    `row_notes` are what became of the rows: they are shown before the training.
    """

    model: SentenceModel
    tokenizer: Tokenizer
    model_type: str | None  # as the folder of the start names it
    figures: dict[str, float] | None
    row_notes: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def save(self, out: Path) -> None:
        """Put the model folder into `out`."""
        with result_folder(out) as staging:
            save_model(
                whole_model(self.model.model),
                self.tokenizer,
                staging,
                sentence=self.model.learned_settings(),
                model_type=self.model_type,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    """What is built from a job before its first step."""

    loaded: LoadedFolder
    model: SentenceModel
    rows: EncodedRows
    dev: dict[str, Ints]  # tokens of each dev text
    notes: tuple[str, ...]
    classes: tuple[str, ...]


SentenceLearner = Learner[SentenceJob, _Made, TrainedSentences]


def sentence_learner() -> SentenceLearner:
    """What sentence training gives to the loop."""
    return Learner(name="sentence training", facts=_facts, prepare=_prepare, finish=_finish)


def train_sentences(
    job: SentenceJob, *, execution: Execution | None = None, watch: Watcher | None = None
) -> Trained[TrainedSentences]:
    """Train, or resume training, and write the model folder with the best weights."""
    return run_job(sentence_learner(), job, execution=execution, watch=watch)


def _prepare(
    job: SentenceJob, execution: Execution, watch: Watcher | None
) -> Prepared[_Made] | Outcome:
    recipe, made = job.recipe, _build(job, execution)
    workload = SentenceWorkload(
        made.rows,
        across=made.model.objective.across,
        batch=recipe.plan.batch,
        micro_tokens=recipe.plan.micro_tokens,
        seed=recipe.run.seed,
        ranks=execution.ranks,
    )
    schedule = recipe.plan.schedule(len(made.rows.rows) / recipe.plan.batch)
    inputs = LoopInputs.of_recipe(
        recipe,
        made.model,
        workload,
        schedule=schedule,
        rate=by_width(made.model.model.spec.hidden),
        every=recipe.plan.every(schedule.steps),
        evaluate=None if job.rows.dev is None else lambda: _evaluate(job, made, execution),
    )
    return Prepared(inputs=inputs, made=made)


def _build(job: SentenceJob, execution: Execution) -> _Made:
    recipe = job.recipe
    if recipe.objective is None:
        raise ConfigError("the objective is not decided; set objective.kind")
    loaded = load_model(job.model)
    rows = training_rows(
        job.rows.train,
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
    texts = [] if job.rows.dev is None else job.rows.dev.texts()
    dev = dict(zip(texts, encoder.ids(texts), strict=True))
    use_embedding_subset(model.model, [*encoded.texts, *dev.values()])
    execution.prepare(model)
    return _Made(
        loaded=loaded,
        model=model,
        rows=encoded,
        dev=dev,
        notes=tuple(notes),
        classes=rows.classes,
    )


def _evaluate(job: SentenceJob, made: _Made, execution: Execution) -> Evaluation:
    """Figures of the dev rows."""
    if job.rows.dev is None:
        raise ConfigError("there are no dev rows")
    scores = dev_scores(
        job.rows.dev,
        made.model,
        made.dev,
        execution,
        classes=made.classes,
        positive=job.recipe.data.positive,
    )
    return Evaluation(losses={}, accuracy={}, counts={}, total=0.0, figures=scores.figures)


def _finish(
    job: SentenceJob, made: _Made, outcome: Outcome, execution: Execution
) -> TrainedSentences:
    restore_embeddings(made.model.model)
    return TrainedSentences(
        model=made.model.eval(),
        tokenizer=made.loaded.tokenizer,
        model_type=made.loaded.folder.config.get("model_type"),
        figures=None if outcome.evaluation is None else dict(outcome.evaluation.figures),
        row_notes=made.notes,
    )


def _facts(job: SentenceJob, execution: Execution) -> dict[str, Fact]:
    """What a checkpoint records of a job besides what the loop records: see `Run`."""
    rows = job.rows
    digests = {
        "data.train": _digest(rows.train),
        "data.dev": None if rows.dev is None else _digest(rows.dev),
    }
    return job_facts(job, execution, digests)


def _digest(data: SentenceData) -> str:
    """Of all that is read of the rows."""
    targets = None if data.targets is None else data.targets.tolist()
    return json_digest(
        {"kind": data.kind, "rows": [list(row) for row in data.rows], "targets": targets}
    )
