"""`bertsmith evaluate`: metrics of a fine-tuned model, or of published answers, on a file."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertsmith.cli.shared.data_options import DataOptions
from bertsmith.cli.shared.fine_tuned import EvaluationOptions, load_fine_tuned, predict_all
from bertsmith.cli.shared.options import MODEL, OUTPUT, Json, Quiet, spread
from bertsmith.errors import ConfigError, InputFileError

if TYPE_CHECKING:
    from bertsmith.labeled.example import Example
    from bertsmith.runtime.predictor import Predictor
    from bertsmith.tasks.prediction import Prediction

What = Annotated[
    list[str], typer.Argument(metavar="DIR FILE", help="Fine-tuned model folder, labeled file.")
]
AnswersFile = Annotated[
    Path | None,
    typer.Option(
        "--answers",
        metavar="PRED.json",
        help="Evaluate a file of SQuAD predictions (id to answer) instead of a model.",
        rich_help_panel=MODEL,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR",
        help="Also write evaluation.json and predictions.jsonl.",
        rich_help_panel=OUTPUT,
    ),
]
SHOWN_CLASSES = 40


@spread
def evaluate(
    what: What,
    reading: DataOptions,
    computing: EvaluationOptions,
    answers: AnswersFile = None,
    out: Out = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Evaluate a fine-tuned model on labeled rows, or published answers on their questions.

    Examples:

        bertsmith evaluate my-model test.tsv

        bertsmith evaluate my-model test.tsv --out results

        bertsmith evaluate --answers predictions.json dev-v1.1.json
    """
    if answers is not None:
        record = _published(what, answers, reading, quiet=quiet)
    else:
        record = _model(what, reading, computing, out, quiet=quiet)
    if as_json:
        text = json.dumps(record, ensure_ascii=False, indent=2)
    else:
        from bertsmith.cli.views.evaluate import proof_lines

        text = "\n".join(proof_lines(record, most=SHOWN_CLASSES))
    sys.stdout.write(text + "\n")


def _published(
    what: list[str], answers: Path, reading: DataOptions, *, quiet: bool
) -> dict[str, Any]:
    from bertsmith.cli.shared.published_answers import score_answers

    if len(what) != 1:
        raise ConfigError(
            "with --answers, give one file of questions: "
            "bertsmith evaluate --answers predictions.json dev.json"
        )
    return score_answers(
        answers, Path(what[0]), reading.labeled(), on_error=reading.on_error, quiet=quiet
    )


def _model(
    what: list[str],
    reading: DataOptions,
    computing: EvaluationOptions,
    out: Path | None,
    *,
    quiet: bool,
) -> dict[str, Any]:
    from bertsmith.evaluation.proof import prove

    if len(what) != 2:
        raise ConfigError(
            "give a fine-tuned folder and a file of labeled rows: "
            "bertsmith evaluate my-model test.tsv"
        )
    folder, path = what[0], Path(what[1])
    predictor = load_fine_tuned(folder, computing, quiet=quiet)
    examples = rows_for(folder, predictor, path, reading, quiet=quiet)
    predictions = predict_all(predictor, examples, "evaluate", quiet=quiet)
    record: dict[str, Any] = {
        "model": folder,
        "file": str(path),
        **prove(predictor.task, examples, predictions).to_json(),
    }
    if out is not None:
        _write(out, record, examples, predictions)
    return record


def rows_for(
    folder: str, predictor: Predictor, path: Path, reading: DataOptions, *, quiet: bool
) -> list[Example]:
    """The labeled rows of a file, read like the model's training data where possible."""
    from bertsmith.cli.commands.predict import say_spec
    from bertsmith.labeled.guess.infer_spec import infer_spec
    from bertsmith.runtime.predict_files import trained_spec

    spec = infer_spec(
        path,
        reading.labeled(),
        trained_spec(Path(folder)),
        predictor.task.name,
        labeled=True,
        target=predictor.task.kind.target,
    )
    if predictor.meta_columns:
        spec = spec.model_copy(update={"extra": (*(spec.extra or ()), *predictor.meta_columns)})
    spec = _with_labels(spec, predictor)
    say_spec(path, spec, quiet=quiet)
    return _labeled(path, spec, reading, quiet=quiet)


def _with_labels(spec: Any, predictor: Predictor) -> Any:
    """Restrict labels to those of the model; a row with another one is rejected with its place."""
    from bertsmith.labeled.targets import TARGETS

    labels = predictor.task.labels
    if spec.label == () or not labels or not TARGETS[predictor.task.kind.target].named:
        return spec
    why = {**spec.why, "labels": "the labels of the model"}
    return spec.model_copy(update={"labels": tuple(labels), "why": why})


def _labeled(path: Path, spec: Any, reading: DataOptions, *, quiet: bool) -> list[Example]:
    from bertsmith.cli.shared.console import note
    from bertsmith.labeled.read.reader import read_examples

    rows = read_examples(path, spec, on_error=reading.on_error)
    examples = list(rows)
    for remark in rows.account.notes():
        note(f"{path.name}: {remark}", quiet=quiet)
    if rows.account.rows_rejected:
        note(
            f"{rows.account.rows_rejected:,} of {rows.account.rows_in:,} rows were rejected, in "
            f"{path}.rejected.jsonl",
            quiet=quiet,
        )
    labeled = [example for example in examples if example.target is not None]
    if not labeled:
        raise InputFileError(
            f"{path}, line 1: no row has a label to compare with; name its column with --label"
        )
    return labeled


def _write(
    out: Path, record: dict[str, Any], examples: list[Example], predictions: list[Prediction]
) -> None:
    from bertsmith.files.atomic_file import write_staged
    from bertsmith.runtime.predict_files import write_labeled

    out.mkdir(parents=True, exist_ok=True)
    write_labeled(out / "predictions.jsonl", examples, predictions)
    text = json.dumps(record, ensure_ascii=False, indent=2)
    write_staged(out / "evaluation.json", text.encode() + b"\n")
