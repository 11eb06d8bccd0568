"""Evaluation of a fine-tuned model on a file of labeled rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import NoneType
from typing import Any, Literal

from bertsmith.api.correction import evaluate_corrector
from bertsmith.api.observer import Observer
from bertsmith.api.writing import evaluate_writing
from bertsmith.errors import InputFileError, check_type
from bertsmith.evaluation.proof import prove
from bertsmith.files.atomic_folder import make_folder
from bertsmith.files.strict_json import write_json
from bertsmith.labeled.example import TARGETS, Example
from bertsmith.labeled.guess.infer_spec import infer_spec
from bertsmith.labeled.read.reader import OnError, read_examples
from bertsmith.labeled.spec import DataSpec, column_of
from bertsmith.runtime.corrector import is_corrector
from bertsmith.runtime.load_predictor import load_predictor
from bertsmith.runtime.predict_files import trained_spec, write_labeled
from bertsmith.runtime.predictor import Predictor
from bertsmith.seq2seq.record import WritingFolder
from bertsmith.tasks.prediction import Prediction

CHUNK = 256  # rows between two reports of progress


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
    if is_corrector(model):
        place = None if out is None else Path(out)
        given = spec or DataSpec()
        return evaluate_corrector(
            model, Path(data), given, on_error=on_error, out=place, device=device
        )
    writing = WritingFolder.at(model, device=device)
    if writing is not None:
        place = None if out is None else Path(out)
        given = spec or DataSpec()
        return evaluate_writing(writing, Path(data), given, on_error=on_error, out=place)
    predictor = load_predictor(model, device=device, precision=precision)
    examples = labeled_rows(model, predictor, Path(data), spec or DataSpec(), on_error=on_error)
    return run_evaluate(model, predictor, Path(data), examples, out=out)


def run_evaluate(
    model: str | Path,
    predictor: Predictor,
    data: Path,
    examples: Sequence[Example],
    *,
    out: str | Path | None = None,
    observer: Observer | None = None,
) -> dict[str, Any]:
    """The record of a predictor on rows that are read already."""
    predictions = predict_all(predictor, examples, "evaluate", observer or Observer())
    proof = prove(predictor.task, examples, predictions).to_json()
    record = {"model": str(model), "file": str(data), **proof}
    if out is not None:
        folder = Path(out)
        make_folder(folder)
        write_labeled(folder / "predictions.jsonl", examples, predictions)
        write_json(folder / "evaluation.json", record)
    return record


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
