"""Sentence vectors: training from a file of rows to a model folder, and evaluation on files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bertsmith import __version__
from bertsmith.api.observer import Observer, executing
from bertsmith.api.train import TrainedModel
from bertsmith.config import Overrides, overrides_of, validated
from bertsmith.errors import ConfigError, unknown
from bertsmith.files.atomic_file import write_staged
from bertsmith.folders.read import read_folder
from bertsmith.labeled.pairs.pairs import (
    Kind,
    SentenceData,
    positive_label,
    read_sentences,
    split_dev,
)
from bertsmith.labeled.read.reader import OnError
from bertsmith.labeled.spec import DataSpec
from bertsmith.labeled.split.splits import split_files
from bertsmith.runtime.loading import LoadedModel, load
from bertsmith.runtime.selection import Precision
from bertsmith.sentences.compare import SIMILARITIES, Vectors
from bertsmith.sentences.evaluate import Aggregation, SentenceScores, aggregate, evaluate_rows
from bertsmith.sentences.train.recipe import SentenceRecipe, load_sentence_recipe
from bertsmith.sentences.train.rows import KINDS, training_rows, usual_objective
from bertsmith.sentences.train.seeds import train_seeds
from bertsmith.sentences.train.train import SentenceJob
from bertsmith.sentences.train.train import train_sentences as run_job
from bertsmith.training.execution.execution import Execution
from bertsmith.training.execution.stop import StopRequest
from bertsmith.training.loop.run import Outcome

RECORD = "sentences.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceRequest:
    """What to train on what; everything but `data`, `model` and `out` has a default.

    `overrides` are settings laid over the recipe; `objective` and `kind` are chosen by the data
    if they are None; `spec` is what is known of the columns, `by_lines` that there are none.
    With several `seeds` the best by the dev rows is saved.
    """

    data: Path
    model: str
    out: Path
    recipe: str | Path | None = None
    overrides: Overrides = ()
    objective: str | None = None
    kind: Kind | None = None
    spec: DataSpec = field(default_factory=DataSpec)
    by_lines: bool = False
    on_error: OnError = "stop"
    dev: Path | None = None
    test: Path | None = None
    accept: Sequence[str] = ()
    seeds: int = 1
    device: str | None = None

    def read_recipe(self) -> SentenceRecipe:
        """The recipe by name or path with the overrides, and the objective if one is named."""
        recipe = load_sentence_recipe(self.recipe, self.overrides)
        return recipe if self.objective is None else with_objective(recipe, self.objective)


def train_sentences(
    data: str | Path,
    *,
    model: str,
    out: str | Path,
    objective: str | None = None,
    kind: Kind | None = None,
    dev: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    device: str | None = None,
) -> TrainedModel:
    """Train sentence vectors; the same call again resumes a run that was interrupted.

    `data` is a file, or a folder with train, dev and test files: pairs with scores or labels,
    triplets, question-answer pairs or plain texts. `objective` is softmax, cosine, cosent, triplet,
    contrastive or simcse. `settings` are those of a recipe by dotted name, {"plan.steps": 100} say.
    """
    request = SentenceRequest(
        data=Path(data),
        model=model,
        out=Path(out),
        overrides=overrides_of(settings),
        objective=objective,
        kind=kind,
        dev=None if dev is None else Path(dev),
        device=device,
    )
    return run_train_sentences(request)


def run_train_sentences(
    request: SentenceRequest, observer: Observer | None = None, *, stop: StopRequest | None = None
) -> TrainedModel:
    """Read, train, save and evaluate, as the request says."""
    recipe = request.read_recipe()  # mistakes here and in the name of the model
    read_folder(request.model)  # come before the reading
    with executing(recipe.run, request.out, observer, device=request.device, stop=stop) as (
        execution,
        observer,
    ):
        train, dev, test = _read_all(request, recipe, observer)
        recipe = _decided(recipe, train, observer)
        job = SentenceJob(
            recipe=recipe,
            model=request.model,
            train=train,
            dev=dev,
            out=request.out,
            accept=request.accept,
        )
        outcome, run, several = _trained(request, job, execution, observer)
        first = execution.ranks.is_first
        if outcome.status == "stopped" or not first:
            return TrainedModel(folder=request.out, outcome=outcome, is_first=first)
        record = _write_record(job, test, run, several, device=str(execution.device))
        return TrainedModel(folder=request.out, outcome=outcome, record=record)


def _trained(
    request: SentenceRequest, job: SentenceJob, execution: Execution, observer: Observer
) -> tuple[Outcome, Path, dict[str, Any]]:
    """How training ended, the folder of the chosen run, and what it adds to the record."""
    with observer.training() as watch:
        if request.seeds == 1:
            result = run_job(job, execution=execution, watch=watch)
            return result.outcome, job.folder, {"notes": list(result.notes)}
        first = job.recipe.run.seed
        seeds = range(first, first + request.seeds)
        how: dict[str, Any] = {"execution": execution, "watch": watch, "notice": observer.note}
        many, notes = train_seeds(job, seeds, **how)
    if many.best is None:
        return many.outcome, job.folder, {}
    return many.outcome, many.best.folder, {"notes": list(notes), **many.to_json()}


def with_objective(recipe: SentenceRecipe, name: str) -> SentenceRecipe:
    """The recipe with the objective of this name; its settings stay if it has that one already."""
    if name not in KINDS:
        raise unknown("objective", name, KINDS)
    if recipe.objective is not None and recipe.objective.kind == name:
        return recipe
    tree = {**recipe.model_dump(mode="json", exclude_none=True), "objective": {"kind": name}}
    return validated(SentenceRecipe, tree, f"the objective {name}")


def _decided(recipe: SentenceRecipe, train: SentenceData, observer: Observer) -> SentenceRecipe:
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
    observer.note(f"objective: {objective.kind}{f' ({settings})' if settings else ''}, {why}")
    rows = training_rows(
        train, objective.kind, positive=recipe.data.positive, bounds=recipe.data.range
    )
    for remark in rows.notes:
        observer.note(remark)
    return recipe


def _read_all(
    request: SentenceRequest, recipe: SentenceRecipe, observer: Observer
) -> tuple[SentenceData, SentenceData | None, SentenceData | None]:
    """Train, dev and test rows; dev rows are cut off where no file has them."""
    files = {"train": request.data}
    if request.data.is_dir():
        files, unused = split_files(request.data)
        if unused:
            observer.note(f"files not used: {', '.join(unused)}")
    files |= {n: p for n, p in (("dev", request.dev), ("test", request.test)) if p is not None}
    train = read_sentences(
        files["train"],
        kind=request.kind,
        spec=request.spec,
        on_error=request.on_error,
        by_lines=request.by_lines,
    )
    _show(train, observer)
    others: dict[str, SentenceData | None] = {"dev": None, "test": None}
    for name in others:
        if name in files:
            # What was set for the columns is of the training file; another kind has others.
            own = request.spec if request.dev is None else DataSpec(encoding=request.spec.encoding)
            kind = request.kind if request.data.is_dir() and request.kind != "texts" else None
            others[name] = read_sentences(
                files[name], kind=kind, spec=own, on_error=request.on_error
            )
            _show(others[name], observer)
    dev = others["dev"]
    if dev is None and train.kind != "texts":
        train, dev = split_dev(train, recipe.data.dev, recipe.run.seed)
        observer.note(f"{len(dev):,} of the rows are dev rows; --dev names a file instead")
    elif dev is None:
        observer.note(
            "plain texts have no dev rows, so the last weights are taken: --dev FILE with scored "
            "or labeled pairs keeps the best ones, and shows whether training helps"
        )
    if not len(train):
        raise ConfigError(f"{request.data}: no row is left to train on; lower data.dev")
    return train, dev, others["test"]


def _show(data: SentenceData | None, observer: Observer) -> None:
    """How a file was read."""
    if data is not None:
        observer.lines([f"{data.source}, read as:", *(f"  {line}" for line in data.describe())])
        for remark in data.notes:
            observer.note(remark)


def _write_record(
    job: SentenceJob,
    test: SentenceData | None,
    run: Path,
    more: Mapping[str, Any],
    *,
    device: str,
) -> dict[str, Any]:
    """Evaluate the saved folder, and the model it was made from, and write sentences.json.

    `run` is the folder of the run that the saved weights come from.
    """
    if job.recipe.objective is None:
        raise ConfigError("a record needs an objective")
    sides = {name: data for name, data in (("dev", job.dev), ("test", test)) if data is not None}
    scores: dict[str, Any] = {"dev": None, "test": None}
    for model, place in ((str(job.folder), "figures"), (job.model, "before")):
        if not sides:
            break
        with load(model, device=device, precision="fp32") as loaded:
            for name, data in sides.items():
                samples = 1_000 if place == "figures" else 0
                positive = job.recipe.data.positive
                found = _scored(loaded, data, positive=positive, samples=samples)
                if found is None:
                    continue
                if place == "figures":
                    scores[name] = found.to_json()
                elif scores[name] is not None:
                    scores[name]["before"] = found.figures
    result = json.loads((run / "result.json").read_bytes())
    record = {
        "bertsmith": __version__,
        "model": job.model,
        "objective": job.recipe.objective.model_dump(mode="json"),
        "recipe": job.recipe.model_dump(mode="json"),
        "data": {"file": job.train.source, "kind": job.train.kind, "rows": len(job.train)},
        "best_step": (result.get("best") or {}).get("step"),
        "steps": result["step"],
        **scores,
        **more,
    }
    text = json.dumps(record, ensure_ascii=False, indent=1)
    write_staged(job.folder / RECORD, text.encode("utf-8", "replace") + b"\n")
    return record


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


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceEvaluation:
    """How files are evaluated; `dim` cuts vectors to their first dimensions.

    `aggregation` joins several STS files: all pairs together, or the mean over files.
    """

    kind: Kind | None = None
    spec: DataSpec = field(default_factory=DataSpec)
    on_error: OnError = "stop"
    positive: str | None = None
    corpus: Path | None = None
    aggregation: Aggregation = "all"
    similarity: str | None = None
    dim: int | None = None
    samples: int = 1_000


def evaluate_sentences(
    model: str | Path,
    files: str | Path | Sequence[str | Path],
    *,
    settings: SentenceEvaluation | None = None,
    device: str = "cpu",
    precision: Precision = "fp32",
    observer: Observer | None = None,
) -> dict[str, Any]:
    """Figures of a model's vectors on files: STS, pair classification, retrieval, triplets.

    What a file holds is guessed from its content. The main figure of each has a bootstrap interval.
    """
    settings = settings or SentenceEvaluation()
    observer = observer or Observer()
    paths = [Path(files)] if isinstance(files, str | Path) else [Path(file) for file in files]
    rows = [
        read_sentences(path, kind=settings.kind, spec=settings.spec, on_error=settings.on_error)
        for path in paths
    ]
    for data in rows:
        _show(data, observer)
    corpus = [] if settings.corpus is None else _corpus(settings.corpus)
    with load(model, device=device, precision=precision) as loaded:
        own = settings.similarity or loaded.settings.similarity
        if own not in SIMILARITIES:
            raise unknown("similarity", own, SIMILARITIES)
        if settings.dim is not None and not 0 < settings.dim <= loaded.dimension:
            raise ConfigError(
                f"--dim {settings.dim}: vectors of {model} have {loaded.dimension} dimensions"
            )

        def encode(texts: Sequence[str]) -> Vectors:
            return loaded.encode(texts)[:, : settings.dim]

        scores = [
            evaluate_rows(
                data,
                encode,
                similarity=own,
                positive=settings.positive,
                corpus=corpus,
                samples=settings.samples,
            )
            for data in rows
        ]
    record: dict[str, Any] = {
        "model": str(model),
        "similarity": own,
        "dim": settings.dim or loaded.dimension,
        "files": [one.to_json() for one in scores],
    }
    correlated = [one for one in scores if one.measure == "sts"]
    if len(correlated) > 1:
        joined = aggregate(correlated, settings.aggregation)
        record["sts"] = {"aggregation": settings.aggregation, "files": len(correlated), **joined}
    return record


def _corpus(path: Path) -> list[str]:
    return read_sentences(path, by_lines=path.suffix == ".txt", kind="texts").texts()
