"""The kind of training that learns sentence vectors from rows of texts."""

from __future__ import annotations

from typing import Any

from bertsmith.config import validated
from bertsmith.errors import ConfigError, unknown
from bertsmith.folders.read import read_folder
from bertsmith.labeled.pairs.pairs import (
    Kind,
    SentenceData,
    positive_label,
    read_sentences,
    split_dev,
)
from bertsmith.labeled.spec import DataSpec
from bertsmith.labeled.split.splits import split_files
from bertsmith.report.sentence_vectors import sentence_result, sentence_sections
from bertsmith.runtime.loading import LoadedModel, load
from bertsmith.sentences.evaluate import SentenceScores, evaluate_rows
from bertsmith.sentences.train.learner import (
    SENTENCES,
    SentenceJob,
    SentenceSplits,
    TrainedSentences,
    sentence_learner,
)
from bertsmith.sentences.train.recipe import SentenceRecipe, load_sentence_recipe
from bertsmith.sentences.train.rows import KINDS, training_rows, usual_objective
from bertsmith.training.kind import Audience, Reading, TrainingKind, TrainingRequest
from bertsmith.training.record import Making

SAMPLES = 1_000  # of the bootstrap behind an interval

SentenceReading = Reading[SentenceRecipe]
SentenceMaking = Making[SentenceRecipe, SentenceSplits, TrainedSentences]


def sentence_kind(
    objective: str | None = None, kind: Kind | None = None, *, by_lines: bool = False
) -> TrainingKind[SentenceRecipe, SentenceSplits, TrainedSentences]:
    """Training of sentence vectors, by an objective, on rows of a kind.

    Both are chosen by the data if they are None; `by_lines`: the files have no columns.
    """

    def recipe(request: TrainingRequest) -> SentenceRecipe:
        found = load_sentence_recipe(request.recipe, request.overrides)
        return found if objective is None else with_objective(found, objective)

    return TrainingKind(
        name=SENTENCES,
        recipe=recipe,
        check=lambda request, recipe: _check(request),
        read=lambda reading: _read(reading, kind, by_lines=by_lines),
        learner=sentence_learner,
        prove=_prove,
        sections=sentence_sections,
        result=sentence_result,
    )


def with_objective(recipe: SentenceRecipe, name: str) -> SentenceRecipe:
    """The recipe with the objective of this name; its settings stay if it has that one already."""
    if name not in KINDS:
        raise unknown("objective", name, KINDS)
    if recipe.objective is not None and recipe.objective.kind == name:
        return recipe
    tree = {**recipe.model_dump(mode="json", exclude_none=True), "objective": {"kind": name}}
    return validated(SentenceRecipe, tree, f"the objective {name}")


def _check(request: TrainingRequest) -> None:
    read_folder(request.model)


def _read(reading: SentenceReading, kind: Kind | None, *, by_lines: bool) -> SentenceJob:
    request = reading.request
    splits = _splits(reading, kind, by_lines=by_lines)
    return SentenceJob(
        recipe=_decided(reading.recipe, splits.train, reading.audience),
        task=SENTENCES,
        model=request.model,
        rows=splits,
        out=request.out,
        accept=request.accept,
    )


def _decided(recipe: SentenceRecipe, train: SentenceData, audience: Audience) -> SentenceRecipe:
    """The recipe with an objective, which is shown with what it makes of the rows."""
    why = "as set"
    if recipe.objective is None:
        recipe = with_objective(recipe, usual_objective(train))
        why = f"usual for {train.kind}"
    objective = recipe.objective
    if objective is None:
        raise ConfigError("the objective is not decided; set objective.kind")
    settings = ", ".join(
        f"{name} {value}" for name, value in objective.model_dump().items() if name != "kind"
    )
    audience.note(f"objective: {objective.kind}{f' ({settings})' if settings else ''}, {why}")
    rows = training_rows(
        train, objective.kind, positive=recipe.data.positive, bounds=recipe.data.range
    )
    for remark in rows.notes:
        audience.note(remark)
    return recipe


def _splits(reading: SentenceReading, kind: Kind | None, *, by_lines: bool) -> SentenceSplits:
    """Train, dev and test rows; dev rows are cut off where no file has them."""
    request, recipe, audience = reading.request, reading.recipe, reading.audience
    files = {"train": request.data}
    if request.data.is_dir():
        files, unused = split_files(request.data)
        if unused:
            audience.note(f"files not used: {', '.join(unused)}")
    files |= request.files
    train = read_sentences(
        files["train"],
        kind=kind,
        spec=request.spec,
        on_error=request.on_error,
        by_lines=by_lines,
    )
    show_rows(train, audience)
    others: dict[str, SentenceData | None] = {"dev": None, "test": None}
    for name in others:
        if name in files:
            # What was set for the columns is of the training file; another kind has others.
            plain = DataSpec(encoding=request.spec.encoding)
            found = read_sentences(
                files[name],
                kind=kind if request.data.is_dir() and kind != "texts" else None,
                spec=plain if "dev" in request.files else request.spec,
                on_error=request.on_error,
            )
            show_rows(found, audience)
            others[name] = found
    dev = others["dev"]
    if dev is None and train.kind != "texts":
        train, dev = split_dev(train, recipe.data.dev, recipe.run.seed)
        audience.note(f"{len(dev):,} of the rows are dev rows; --dev names a file instead")
    elif dev is None:
        audience.note(
            "plain texts have no dev rows, so the last weights are taken: --dev FILE with scored "
            "or labeled pairs keeps the best ones, and shows whether training helps"
        )
    if not len(train):
        raise ConfigError(f"{request.data}: no row is left to train on; lower data.dev")
    return SentenceSplits(train=train, dev=dev, test=others["test"])


def show_rows(data: SentenceData, audience: Audience) -> None:
    """How a file was read."""
    audience.lines([f"{data.source}, read as:", *(f"  {line}" for line in data.describe())])
    for remark in data.notes:
        audience.note(remark)


def _prove(making: SentenceMaking) -> dict[str, Any]:
    """Figures of the saved folder, and of the model it was made from."""
    job, rows = making.job, making.job.rows
    if job.recipe.objective is None:
        raise ConfigError("a record needs an objective")
    sides = {"train": rows.train, "dev": rows.dev, "test": rows.test}
    known = {name: data for name, data in sides.items() if data is not None}
    return {
        "objective": job.recipe.objective.model_dump(mode="json"),
        "data": {
            "files": {name: data.source for name, data in known.items()},
            "rows": {name: len(data) for name, data in known.items()},
            "kind": rows.train.kind,
            "notes": list(making.finished.row_notes),
        },
        **_scores(making),
    }


def _scores(making: SentenceMaking) -> dict[str, Any]:
    """Figures of dev and test rows, after the training and before it."""
    job = making.job
    named = (("dev", job.rows.dev), ("test", job.rows.test))
    sides = {name: data for name, data in named if data is not None}
    scores: dict[str, Any] = {"dev": None, "test": None}
    for model, place in ((str(job.folder), "figures"), (job.model, "before")):
        if not sides:
            break
        with load(model, device=making.device, precision="fp32") as loaded:
            for name, data in sides.items():
                samples = SAMPLES if place == "figures" else 0
                positive = job.recipe.data.positive
                found = _scored(loaded, data, positive=positive, samples=samples)
                if found is None:
                    continue
                if place == "figures":
                    scores[name] = found.to_json()
                elif scores[name] is not None:
                    scores[name]["before"] = found.figures
    return scores


def _scored(
    model: LoadedModel, data: SentenceData, *, positive: str | None, samples: int
) -> SentenceScores | None:
    """The figures of a model; None for classes that vectors alone cannot tell apart."""
    if data.kind == "labels" and positive_label(data, positive) is None:
        return None
    return evaluate_rows(
        data,
        model.encode,
        similarity=model.settings.similarity,
        positive=positive,
        samples=samples,
    )
