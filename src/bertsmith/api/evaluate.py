"""Evaluation of a fine-tuned model on a file of labeled rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType
from typing import Any, Literal

from bertsmith.api.observer import Observer
from bertsmith.errors import ConfigError, InputFileError, check_type
from bertsmith.evaluation.proof import prove
from bertsmith.files.atomic_folder import make_folder
from bertsmith.files.strict_json import write_json
from bertsmith.folders.kinds import kind_at, refusal
from bertsmith.labeled.errors.rows import correction_rows
from bertsmith.labeled.example import TARGETS, Example
from bertsmith.labeled.guess.infer_spec import infer_spec
from bertsmith.labeled.pairs.splits import similar_rows, written_rows
from bertsmith.labeled.read.reader import OnError, read_examples
from bertsmith.labeled.spec import DataSpec, column_of
from bertsmith.runtime.answer_files import write_labeled
from bertsmith.runtime.corrector import Corrector
from bertsmith.runtime.load_predictor import load_predictor
from bertsmith.runtime.predictor import Predictor
from bertsmith.runtime.row_files import trained_spec
from bertsmith.tasks.prediction import Prediction
from bertsmith.training.kinds.spelling.record import evaluated, write_corrections
from bertsmith.training.kinds.write.kind import show_pairs
from bertsmith.training.kinds.write.record import WritingFolder, write_texts

CHUNK = 256  # rows between two reports of progress


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluateRequest:
    """What is evaluated on which rows, and how.

    `load` makes the predictor of a folder that predicts; `knowledge` is the graph it was told to
    read. `out` is a folder for the record and a row for every answer.
    """

    model: str | Path
    data: Path
    load: Callable[[], Predictor]
    spec: DataSpec = field(default_factory=DataSpec)
    on_error: OnError = "stop"
    out: Path | None = None
    device: str = "cpu"
    knowledge: Path | None = None
    observer: Observer = field(default_factory=Observer)


def _corrected(request: EvaluateRequest) -> dict[str, Any]:
    return evaluate_corrector(
        request.model,
        request.data,
        request.spec,
        on_error=request.on_error,
        out=request.out,
        device=request.device,
        observer=request.observer,
    )


def _written(request: EvaluateRequest) -> dict[str, Any]:
    folder = WritingFolder.at(request.model, device=request.device)
    return evaluate_writing(
        folder,
        request.data,
        request.spec,
        on_error=request.on_error,
        out=request.out,
        observer=request.observer,
    )


def _predicted(request: EvaluateRequest) -> dict[str, Any]:
    predictor = request.load()
    examples = labeled_rows(
        request.model,
        predictor,
        request.data,
        request.spec,
        on_error=request.on_error,
        observer=request.observer,
    )
    predictions = predict_all(predictor, examples, "evaluate", request.observer)
    proof = prove(predictor.task, examples, predictions).to_json()
    record = {"model": str(request.model), "file": str(request.data), **proof}
    if request.out is not None:
        make_folder(request.out)
        write_labeled(request.out / "predictions.jsonl", examples, predictions)
    return record


EVALUATIONS: dict[str, Callable[[EvaluateRequest], dict[str, Any]]] = {
    "correct": _corrected,
    "write": _written,
    "predict": _predicted,
}
"""How a folder is evaluated, by its first ability among these."""


def run_evaluate(request: EvaluateRequest) -> dict[str, Any]:
    """The record of a folder on the rows of a file; its `kind` is the ability that was judged."""
    kind, place = kind_at(request.model)
    can = frozenset({"words"}) if isinstance(place, Path) else kind.abilities(place)
    judged = next((name for name in EVALUATIONS if name in can), None)
    if judged is None:
        raise refusal(request.model, kind, "predict")
    if request.knowledge is not None and judged != "predict":
        raise ConfigError(
            f"--knowledge is for models that were trained with a graph, and {request.model} "
            f"{'corrects' if judged == 'correct' else 'writes'} texts; leave it out"
        )
    record = {"kind": judged, **EVALUATIONS[judged](request)}
    if request.out is not None:
        write_json(request.out / "evaluation.json", record)
    return record


def evaluate(
    model: str | Path,
    data: str | Path,
    *,
    spec: DataSpec | None = None,
    on_error: OnError = "stop",
    out: str | Path | None = None,
    device: str = "cpu",
    precision: Literal["auto", "fp32", "bf16"] = "fp32",
) -> dict[str, Any]:
    """Metrics of a fine-tuned folder on labeled rows, with intervals, classes and worst errors.

    A folder that was trained to write or to correct is evaluated on pairs of texts. `out` is a
    folder for evaluation.json and predictions.jsonl (written.jsonl, corrected.jsonl).
    """
    check_type("data", data, str, Path)
    check_type("spec", spec, DataSpec, NoneType)
    check_type("out", out, str, Path, NoneType)
    return run_evaluate(
        EvaluateRequest(
            model=model,
            data=Path(data),
            load=lambda: load_predictor(model, device=device, precision=precision),
            spec=spec or DataSpec(),
            on_error=on_error,
            out=None if out is None else Path(out),
            device=device,
        )
    )


def predict_all(
    predictor: Predictor, examples: Sequence[Example], title: str, observer: Observer
) -> list[Prediction]:
    """The predictions of rows, with reports of progress."""
    predictions: list[Prediction] = []
    with observer.predicting(title, len(examples)) as progress:
        for _, one in predictor.stream(examples, chunk=CHUNK):
            predictions.append(one)
            if len(predictions) % CHUNK == 0:  # the predictions of a chunk come at once
                progress(len(predictions))
    return predictions


def labeled_rows(
    model: str | Path,
    predictor: Predictor,
    path: Path,
    spec: DataSpec,
    *,
    on_error: OnError = "stop",
    observer: Observer | None = None,
) -> list[Example]:
    """The labeled rows of a file, read as the training data of the model was, where that fits."""
    observer = observer or Observer()
    kind = TARGETS[predictor.task.kind.target]
    spec = infer_spec(
        path,
        spec,
        trained_spec(Path(model)),
        predictor.task.name,
        labeled=True,
        target=predictor.task.kind.target,
    )
    if predictor.meta_columns:
        further = map(column_of, predictor.meta_columns)
        spec = spec.model_copy(update={"extra": (*(spec.extra or ()), *further)})
    if spec.label != () and predictor.task.labels and kind.named:
        # A label that the model does not know makes a row unusable, named with its place.
        why = {**spec.why, "labels": "the labels of the model"}
        spec = spec.model_copy(update={"labels": tuple(predictor.task.labels), "why": why})
    observer.data(path, spec)
    rows = read_examples(path, spec, on_error=on_error)
    examples = [example for example in rows if example.target is not None]
    for remark in rows.account.notes():
        observer.note(f"{path.name}: {remark}")
    if rows.account.rows_rejected:
        observer.note(
            f"{rows.account.rows_rejected:,} of {rows.account.rows_in:,} rows were rejected, in "
            f"{path}.rejected.jsonl"
        )
    if not examples:
        raise InputFileError(
            f"{path}, line 1: no row has a label to compare with; name its column with --label"
        )
    return examples


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
    show_pairs(rows, observer)
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
