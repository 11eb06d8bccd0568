"""Training of a corrector, from wrong and right texts to a model folder; the same call resumes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from bertsmith.correction.recipe import CorrectRecipe
from bertsmith.correction.workload import CorrectionWorkload
from bertsmith.errors import ConfigError
from bertsmith.files.atomic_folder import result_folder
from bertsmith.files.digest import json_digest
from bertsmith.folders.read import LoadedFolder, load_model
from bertsmith.folders.write import save_model
from bertsmith.labeled.errors.rows import wrong_places
from bertsmith.labeled.pairs.pairs import SentenceData
from bertsmith.labeled.pairs.splits import PairSplits
from bertsmith.metrics import better
from bertsmith.metrics.correction import CORRECTIONS
from bertsmith.models.build import Model
from bertsmith.models.surgery import whole_model
from bertsmith.runtime.corrector import Corrector, corrector_extras
from bertsmith.tasks.spelling.edits import places_of, tuned_threshold
from bertsmith.tasks.spelling.features import CharacterTokens, CorrectionFeature
from bertsmith.tasks.spelling.model import SoftMasked
from bertsmith.training.checkpoints.checkpoint import finish_folder
from bertsmith.training.checkpoints.resume import Fact, recorded
from bertsmith.training.default_rate import by_width
from bertsmith.training.execution.execution import Execution
from bertsmith.training.execution.ranks import refuse_sharding
from bertsmith.training.loop.evaluate import Evaluation, EvaluationSettings, evaluate_losses
from bertsmith.training.loop.loop import train
from bertsmith.training.loop.progress import Watcher
from bertsmith.training.loop.run import Outcome, Run
from bertsmith.training.trainable import trainable
from bertsmith.wording import counted

# The loop records the optimizer itself; the others change nothing that is learned.
LEFT_OUT = ("about", "optimizer", "averaging", "save", "run", "threshold")


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectJob:
    """What is to be learned, from what, and where the result goes."""

    recipe: CorrectRecipe
    model: str
    splits: PairSplits
    out: Path
    accept: Collection[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectResult:
    """How training ended; `threshold` is None when it was stopped before its end."""

    outcome: Outcome
    threshold: float | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prepared:
    """What is built from a job before its first step."""

    loaded: LoadedFolder
    module: SoftMasked
    tokens: CharacterTokens
    workload: CorrectionWorkload
    passages: int
    notes: tuple[str, ...]


def train_corrector(
    job: CorrectJob, *, execution: Execution | None = None, watch: Watcher | None = None
) -> CorrectResult:
    """Train, or resume training, tune the threshold on dev rows, and write the model folder."""
    execution = execution or Execution()
    refuse_sharding(execution.ranks, "correction")
    prepared = _prepare(job, execution)
    outcome = train(_run(job, prepared, execution, watch))
    if outcome.status != "finished":
        return CorrectResult(outcome=outcome)
    corrector = Corrector(prepared.module, prepared.tokens, device=execution.device)
    truth, texts = _truth(job.splits.dev)
    threshold = tuned_threshold(truth, corrector.proposals(texts), job.recipe.threshold)
    finish_folder(job.out, lambda out: _save(prepared, threshold, out), execution.ranks)
    return CorrectResult(outcome=outcome, threshold=threshold, notes=prepared.notes)


def _prepare(job: CorrectJob, execution: Execution) -> _Prepared:
    recipe = job.recipe
    loaded = load_model(job.model)
    model = _model(recipe, loaded, device=execution.device.type)
    mask = loaded.tokenizer.special.mask
    if mask is None:
        raise ConfigError(f"{job.model}: the vocabulary has no mask token; take a BERT model")
    longest = loaded.folder.longest()
    length = recipe.length.max_length if longest is None else min(recipe.length.max_length, longest)
    tokens = CharacterTokens(loaded.tokenizer, max_length=length, where=job.model)
    sides = [_features(tokens, data) for data in (job.splits.train, job.splits.dev)]
    (train_rows, unknown), (dev_rows, _) = sides
    notes = []
    if unknown:
        notes.append(
            f"{counted(unknown, 'right character')} of the training rows not in the vocabulary: "
            "the model learns that the place is wrong, not what belongs there"
        )
    module = SoftMasked(model, recipe.detector, mask, seed=recipe.run.seed)
    workload = CorrectionWorkload(
        train_rows,
        dev_rows,
        plan=recipe.plan,
        detection=0.0 if module.detector is None else recipe.detector.weight,
        seed=recipe.run.seed,
        ranks=execution.ranks,
    )
    execution.prepare(module)
    return _Prepared(
        loaded=loaded,
        module=module,
        tokens=tokens,
        workload=workload,
        passages=len(train_rows),
        notes=tuple(notes),
    )


def _features(tokens: CharacterTokens, data: SentenceData) -> tuple[list[CorrectionFeature], int]:
    wrong, right = ([row[at] for row in data.rows] for at in (0, 1))
    features = tokens.features(wrong, right)
    return features, sum(int((one.wanted < 0).sum()) for one in features)


def _model(recipe: CorrectRecipe, loaded: LoadedFolder, *, device: str) -> Model:
    """The masked LM to train, with the dropout of training."""
    source = loaded.model
    heads = [head for head in source.head_specs if head.kind == "masked_lm"]
    if not heads or source.spec.sees == "before" or source.spec.decoder is not None:
        own = ", ".join(head.kind for head in source.head_specs) or "none"
        raise ConfigError(
            f"{loaded.folder.path} is no bidirectional masked LM (its heads: {own}), so it cannot "
            "learn to correct; give the folder of a pre-trained BERT with its masked-LM head"
        )
    return trainable(source, heads, recipe.encoder, device=device)


def _run(job: CorrectJob, prepared: _Prepared, execution: Execution, watch: Watcher | None) -> Run:
    recipe = job.recipe
    schedule = recipe.plan.schedule(prepared.passages)
    rate = recipe.optimizer.lr or by_width(prepared.module.model.spec.hidden)
    return Run(
        folder=job.out,
        model=prepared.module,
        workload=prepared.workload,
        schedule=schedule,
        optimizer=recipe.optimizer.at(rate),
        save=recipe.save,
        evaluation=EvaluationSettings(held_out=0.0, every=recipe.plan.every(schedule.steps)),
        averaging=recipe.averaging,
        seed=recipe.run.seed,
        facts=_facts(job, execution),
        accept=frozenset(job.accept),
        execution=execution,
        watch=watch,
        evaluate=lambda: _evaluate(job, prepared, execution),
        evaluate_start=True,
        best=recipe.best,
        better=better,
    )


def _evaluate(job: CorrectJob, prepared: _Prepared, execution: Execution) -> Evaluation:
    """F1 of the dev rows at the best threshold, and their loss."""
    losses = evaluate_losses(prepared.module, prepared.workload, execution)
    if losses is None:
        raise ConfigError("there are no dev rows to choose the best weights by")
    training = prepared.module.training
    corrector = Corrector(prepared.module, prepared.tokens, device=execution.device)
    truth, texts = _truth(job.splits.dev)
    proposals = corrector.proposals(texts)
    prepared.module.train(training)
    threshold = tuned_threshold(truth, proposals, job.recipe.threshold)
    score = CORRECTIONS.score(truth, [places_of(edits, threshold) for edits in proposals])
    return replace(losses, figures={"correction_f1": score["correction_f1"], "loss": losses.total})


def _truth(data: SentenceData) -> tuple[list[dict[int, str]], list[str]]:
    return [wrong_places(*row[:2]) for row in data.rows], [row[0] for row in data.rows]


def _save(prepared: _Prepared, threshold: float, out: Path) -> None:
    """Put the model folder into `out`."""
    extras = corrector_extras(
        prepared.module, threshold=threshold, max_length=prepared.tokens.lengths.max_length
    )
    with result_folder(out) as staging:
        save_model(
            whole_model(prepared.module.model),
            prepared.loaded.tokenizer,
            staging,
            model_type=prepared.loaded.folder.config.get("model_type"),
            extras=extras,
        )


def _facts(job: CorrectJob, execution: Execution) -> dict[str, Fact]:
    """What a checkpoint records of a job besides what the loop records: see `Run`."""
    return {
        **recorded(job.recipe, without=LEFT_OUT),
        "task": "correct",
        "model": job.model,
        "data.train": json_digest({"rows": [list(row) for row in job.splits.train.rows]}),
        "data.dev": json_digest({"rows": [list(row) for row in job.splits.dev.rows]}),
        "precision": execution.precision.name,
    }
