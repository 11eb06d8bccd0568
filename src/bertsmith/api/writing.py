"""Training of models that write, from pairs of texts to a folder with its report; evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from bertsmith.api.observer import Observer, executing
from bertsmith.api.train import TrainedModel
from bertsmith.errors import ConfigError, InputFileError
from bertsmith.files.atomic_folder import make_folder
from bertsmith.folders.read import read_folder
from bertsmith.labeled.pairs.pairs import SentenceData
from bertsmith.labeled.pairs.splits import (
    PairFiles,
    PairSplits,
    read_similar,
    read_written,
    similar_rows,
    written_rows,
)
from bertsmith.labeled.read.reader import OnError
from bertsmith.labeled.spec import DataSpec
from bertsmith.report.written_texts import write_writing_report
from bertsmith.seq2seq.recipe import WriteRecipe, load_write_recipe
from bertsmith.seq2seq.record import WritingFolder, write_record, write_texts
from bertsmith.seq2seq.train import WriteJob, train_to_write
from bertsmith.training.execution.stop import StopRequest
from bertsmith.training.kind import TrainingRequest


def write_recipe(request: TrainingRequest) -> WriteRecipe:
    """The recipe by name or path, or that of the task, with the overrides."""
    return load_write_recipe(request.recipe or str(request.spec.task), request.overrides)


def run_writing(
    request: TrainingRequest, observer: Observer | None = None, stop: StopRequest | None = None
) -> TrainedModel:
    """Read pairs, train, evaluate and report, as the request says."""
    if request.seeds > 1 or request.folds is not None:
        raise ConfigError(
            f"--seeds and --folds are for labeled rows; the task {request.spec.task} is trained "
            "once: leave them out, and give --seed for another run"
        )
    recipe = write_recipe(request)  # mistakes here and in the name of the
    read_folder(request.model)  # model come before the reading
    with executing(recipe.run, request.out, observer, device=request.device, stop=stop) as (
        execution,
        observer,
    ):
        splits = _read(request, recipe, observer)
        job = WriteJob(
            recipe=recipe,
            task=str(request.spec.task),
            model=request.model,
            splits=splits,
            out=request.out,
            accept=request.accept,
        )
        with observer.training() as watch:
            result = train_to_write(job, execution=execution, watch=watch)
        first = execution.ranks.is_first
        if result.outcome.status == "stopped" or not first:
            return TrainedModel(folder=request.out, outcome=result.outcome, is_first=first)
        for remark in result.notes:
            observer.note(remark)
        record = write_record(
            job,
            result,
            device=str(execution.device),
            threads=torch.get_num_threads(),
            precision=execution.precision.name,
        )
        report = write_writing_report(job.folder, record)
        return TrainedModel(folder=job.folder, outcome=result.outcome, record=record, report=report)


def evaluate_writing(
    folder: WritingFolder,
    data: Path,
    spec: DataSpec,
    *,
    on_error: OnError = "stop",
    out: Path | None = None,
    observer: Observer | None = None,
) -> dict[str, Any]:
    """Figures of what a folder writes for the sources of a file, against its targets.

    `out` is a folder for written.jsonl.
    """
    observer = observer or Observer()
    read = similar_rows if folder.loaded.folder.sentence is not None else written_rows
    rows = read(data, spec, on_error)
    _show(rows, observer)
    if not len(rows):
        raise InputFileError(f"{data}: there is no pair to compare with")
    with observer.predicting("evaluate", len(rows)) as progress:
        written = folder.written([row[0] for row in rows.rows])
        progress(len(rows))
    found = folder.evaluated(rows, written)
    record = {
        "model": str(folder.loaded.folder.path),
        "file": str(data),
        "task": folder.task,
        **found,
        "interval": found["intervals"][found["main"]],
        "truncation": {"rows_cut": found["sources_cut"]},
    }
    if out is not None:
        make_folder(out)
        write_texts(out / "written.jsonl", rows, written)
    return record


def _read(request: TrainingRequest, recipe: WriteRecipe, observer: Observer) -> PairSplits:
    """The pairs of each side; how they were read is shown."""
    files = PairFiles(
        data=request.data,
        spec=request.spec,
        on_error=request.on_error,
        also=request.files,
        shares=request.shares,
        split_seed=request.split_seed,
    )
    if recipe.similarity is None:
        splits = read_written(files)
    else:
        splits = read_similar(files, positive=recipe.data.positive)
    shown: set[str] = set()
    for data in splits.sides():
        if data.source not in shown:
            _show(data, observer)
        shown.add(data.source)
    for remark in splits.notes:
        observer.note(remark)
    return splits


def _show(data: SentenceData, observer: Observer) -> None:
    observer.lines([f"{data.source}, read as:", *(f"  {line}" for line in data.describe())])
    for remark in data.notes:
        observer.note(remark)
