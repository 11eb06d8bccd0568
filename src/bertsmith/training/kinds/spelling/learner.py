"""What learns to correct spelling: from wrong and right texts to a corrector."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from bertsmith.errors import ConfigError
from bertsmith.files.atomic_folder import result_folder
from bertsmith.files.digest import json_digest
from bertsmith.folders.read import LoadedFolder, load_model
from bertsmith.folders.write import save_model
from bertsmith.labeled.errors.rows import wrong_places
from bertsmith.labeled.pairs.pairs import SentenceData
from bertsmith.labeled.pairs.splits import PairSplits
from bertsmith.metrics.correction import CORRECTIONS
from bertsmith.models.build import Model
from bertsmith.models.surgery import whole_model
from bertsmith.runtime.corrector import Corrector, corrector_extras
from bertsmith.tasks.spelling.edits import places_of, tuned_threshold
from bertsmith.tasks.spelling.features import CharacterTokens, CorrectionFeature
from bertsmith.tasks.spelling.model import SoftMasked
from bertsmith.training.checkpoints.resume import Fact
from bertsmith.training.default_rate import by_width
from bertsmith.training.execution.execution import Execution
from bertsmith.training.kinds.spelling.recipe import CorrectRecipe
from bertsmith.training.kinds.spelling.workload import CorrectionWorkload
from bertsmith.training.learner import Learner, LoopInputs, Prepared, TrainingJob, job_facts
from bertsmith.training.loop.evaluate import Evaluation, evaluate_losses
from bertsmith.training.loop.run import Outcome
from bertsmith.training.trainable import trainable
from bertsmith.wording import counted

SpellingJob = TrainingJob[CorrectRecipe, PairSplits]


@dataclass(frozen=True, slots=True, kw_only=True)
class _BuiltCorrector:
    """What is built from a job before its first step."""

    loaded: LoadedFolder
    module: SoftMasked
    tokens: CharacterTokens
    workload: CorrectionWorkload
    passages: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedCorrector:
    """A trained corrector, its threshold tuned on the dev rows."""

    module: SoftMasked
    tokens: CharacterTokens
    loaded: LoadedFolder
    threshold: float
    figures: dict[str, float] | None
    notes: tuple[str, ...]

    def save(self, out: Path) -> None:
        """Put the model folder into `out`."""
        length = self.tokens.lengths.max_length
        extras = corrector_extras(self.module, threshold=self.threshold, max_length=length)
        with result_folder(out) as staging:
            save_model(
                whole_model(self.module.model),
                self.loaded.tokenizer,
                staging,
                model_type=self.loaded.folder.config.get("model_type"),
                extras=extras,
            )


def spelling_learner() -> Learner[SpellingJob, _BuiltCorrector, FinishedCorrector]:
    """What learns to correct from wrong and right texts."""
    return Learner(
        name="correction",
        facts=_facts,
        prepare=lambda job, execution, _: _prepare(job, execution),
        finish=_finish,
    )


def _prepare(job: SpellingJob, execution: Execution) -> Prepared[_BuiltCorrector]:
    recipe = job.recipe
    made = _build(job, execution)
    schedule = recipe.plan.schedule(made.passages / recipe.plan.batch)
    inputs = LoopInputs.of_recipe(
        recipe,
        made.module,
        made.workload,
        schedule=schedule,
        rate=by_width(made.module.model.spec.hidden),
        every=recipe.plan.every(schedule.steps),
        evaluate=lambda: _evaluate(job, made, execution),
    )
    return Prepared(inputs=inputs, made=made)


def _build(job: SpellingJob, execution: Execution) -> _BuiltCorrector:
    recipe = job.recipe
    loaded = load_model(job.model)
    model = _model(recipe, loaded, device=execution.device.type)
    mask = loaded.tokenizer.special.mask
    if mask is None:
        raise ConfigError(f"{job.model}: the vocabulary has no mask token; take a BERT model")
    longest = loaded.folder.longest()
    length = recipe.length.max_length if longest is None else min(recipe.length.max_length, longest)
    tokens = CharacterTokens(loaded.tokenizer, max_length=length, where=job.model)
    sides = [_features(tokens, data) for data in (job.rows.train, job.rows.dev)]
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
    return _BuiltCorrector(
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


def _evaluate(job: SpellingJob, prepared: _BuiltCorrector, execution: Execution) -> Evaluation:
    """F1 of the dev rows at the best threshold, and their loss."""
    losses = evaluate_losses(prepared.module, prepared.workload, execution)
    if losses is None:
        raise ConfigError("there are no dev rows to choose the best weights by")
    training = prepared.module.training
    corrector = Corrector(prepared.module, prepared.tokens, device=execution.device)
    truth, texts = _truth(job.rows.dev)
    proposals = corrector.proposals(texts)
    prepared.module.train(training)
    threshold = tuned_threshold(truth, proposals, job.recipe.threshold)
    score = CORRECTIONS.score(truth, [places_of(edits, threshold) for edits in proposals])
    return replace(losses, figures={"correction_f1": score["correction_f1"], "loss": losses.total})


def _truth(data: SentenceData) -> tuple[list[dict[int, str]], list[str]]:
    return [wrong_places(*row[:2]) for row in data.rows], [row[0] for row in data.rows]


def _finish(
    job: SpellingJob, made: _BuiltCorrector, outcome: Outcome, execution: Execution
) -> FinishedCorrector:
    """Tune the threshold on the dev rows."""
    corrector = Corrector(made.module, made.tokens, device=execution.device)
    truth, texts = _truth(job.rows.dev)
    chosen = outcome.evaluation
    return FinishedCorrector(
        module=made.module,
        tokens=made.tokens,
        loaded=made.loaded,
        threshold=tuned_threshold(truth, corrector.proposals(texts), job.recipe.threshold),
        figures=None if chosen is None else dict(chosen.figures),
        notes=made.notes,
    )


def _facts(job: SpellingJob, execution: Execution) -> dict[str, Fact]:
    sides = {"data.train": job.rows.train, "data.dev": job.rows.dev}
    digests = {
        name: json_digest({"rows": [list(row) for row in data.rows]})
        for name, data in sides.items()
    }
    return job_facts(job, execution, digests, without=("threshold",))
