"""Training of a corrector from files, with its report; evaluation; correction of texts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from bertsmith.api.observer import Observer, executing
from bertsmith.api.train import TrainedModel
from bertsmith.correction.recipe import CorrectRecipe, load_correct_recipe
from bertsmith.correction.record import evaluated, write_correction_record, write_corrections
from bertsmith.correction.train import CorrectJob, train_corrector
from bertsmith.errors import ConfigError, InputFileError
from bertsmith.files.atomic_folder import make_folder
from bertsmith.folders.read import read_folder
from bertsmith.labeled.errors.rows import correction_rows, read_corrections
from bertsmith.labeled.pairs.splits import PairFiles
from bertsmith.labeled.read.reader import OnError
from bertsmith.labeled.spec import DataSpec
from bertsmith.report.corrections import write_correction_report
from bertsmith.runtime.corrector import Corrector
from bertsmith.tasks.spelling.edits import CorrectedText
from bertsmith.training.execution.stop import StopRequest
from bertsmith.training.kind import TrainingRequest


def correct_recipe(request: TrainingRequest) -> CorrectRecipe:
    """The recipe by name or path with the overrides."""
    return load_correct_recipe(request.recipe, request.overrides)


def run_correction(
    request: TrainingRequest, observer: Observer | None = None, stop: StopRequest | None = None
) -> TrainedModel:
    """Read wrong and right texts, train, evaluate and report, as the request says."""
    if request.seeds > 1 or request.folds is not None:
        raise ConfigError(
            "--seeds and --folds are for labeled rows; the task correct is trained once: leave "
            "them out, and give --seed for another run"
        )
    recipe = correct_recipe(request)  # mistakes here and in the name of the
    read_folder(request.model)  # model come before the reading
    with executing(recipe.run, request.out, observer, device=request.device, stop=stop) as (
        execution,
        observer,
    ):
        files = PairFiles(
            data=request.data,
            spec=request.spec,
            on_error=request.on_error,
            also=request.files,
            shares=request.shares,
            split_seed=request.split_seed,
        )
        splits = read_corrections(files, recipe.errors)
        for remark in dict.fromkeys(
            note for data in splits.sides() for note in (*data.notes, *splits.notes)
        ):
            observer.note(remark)
        job = CorrectJob(
            recipe=recipe,
            model=request.model,
            splits=splits,
            out=request.out,
            accept=request.accept,
        )
        with observer.training() as watch:
            result = train_corrector(job, execution=execution, watch=watch)
        first = execution.ranks.is_first
        if result.outcome.status == "stopped" or not first:
            return TrainedModel(folder=request.out, outcome=result.outcome, is_first=first)
        record = write_correction_record(
            job,
            result,
            device=str(execution.device),
            threads=torch.get_num_threads(),
            precision=execution.precision.name,
        )
        report = write_correction_report(job.out, record)
        return TrainedModel(folder=job.out, outcome=result.outcome, record=record, report=report)


def evaluate_corrector(
    folder: str | Path,
    data: Path,
    spec: DataSpec,
    *,
    on_error: OnError = "stop",
    out: Path | None = None,
    device: str = "cpu",
    observer: Observer | None = None,
) -> dict[str, Any]:
    """Figures of a corrector on the wrong and right texts of a file.

    `out` is a folder for corrected.jsonl.
    """
    corrector = Corrector.load(folder, device=device)
    rows = correction_rows(data, spec, on_error)
    for remark in rows.notes:
        (observer or Observer()).note(remark)
    if not len(rows):
        raise InputFileError(f"{data}: there is no pair to compare with")
    proposals = corrector.proposals([row[0] for row in rows.rows])
    found = evaluated(rows, proposals, corrector.threshold)
    record = {"model": str(folder), "file": str(data), "task": "correct", **found}
    record["notes"] = list(rows.notes)
    record["interval"] = found["intervals"][found["main"]]
    if out is not None:
        make_folder(out)
        write_corrections(out / "corrected.jsonl", rows, proposals, corrector)
    return record


def correct(
    model: str | Path | Corrector,
    texts: Iterable[str],
    *,
    threshold: float | None = None,
    device: str = "cpu",
) -> list[CorrectedText]:
    """Each text with the edits of a corrector that `finetune --task correct` has trained.

    A folder is loaded at every call; a `Corrector` stays in memory.
    """
    corrector = model if isinstance(model, Corrector) else Corrector.load(model, device=device)
    return corrector.correct(texts, threshold=threshold)
