"""`bertsmith evaluate`: metrics of a fine-tuned model, or of published answers, on a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertsmith.cli.shared.console import write_json, write_lines
from bertsmith.cli.shared.data_options import DataOptions, FirstRows
from bertsmith.cli.shared.inference import GraphEvaluationOptions, load_fine_tuned
from bertsmith.cli.shared.options import Json, Quiet
from bertsmith.cli.shared.options_of import spread
from bertsmith.errors import ConfigError
from bertsmith.setting import MODEL, OUTPUT, Setting

if TYPE_CHECKING:
    from bertsmith.labeled.read.reader import OnError
    from bertsmith.labeled.spec import DataSpec

What = Annotated[
    list[str], typer.Argument(metavar="DIR FILE", help="Fine-tuned model folder, labeled file.")
]
Predictions = Annotated[
    Path | None,
    Setting(
        "Evaluate a file of SQuAD predictions (id to answer) instead of a model.",
        MODEL,
        metavar="PRED.json",
    ),
]
Out = Annotated[
    Path | None,
    Setting("Output: a folder for evaluation.json and predictions.jsonl.", OUTPUT, metavar="DIR"),
]
SHOWN_CLASSES = 40


@spread
def evaluate(
    what: What,
    reading: DataOptions,
    computing: GraphEvaluationOptions,
    predictions: Predictions = None,
    rows: FirstRows = None,
    out: Out = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Evaluate a fine-tuned model on labeled rows, or published answers on their questions.

    A model that was trained to write or to correct is evaluated on pairs of texts.

    Examples:

        bertsmith evaluate my-model test.tsv

        bertsmith evaluate my-model test.tsv --out results

        bertsmith evaluate --predictions answers.json dev-v1.1.json
    """
    if predictions is not None:
        if computing.knowledge is not None:
            raise ConfigError("--knowledge is for a model, not for published --predictions")
        record = _published(what, predictions, reading.labeled(rows), reading.on_error, quiet=quiet)
    else:
        record = _model(what, reading.labeled(rows), reading.on_error, computing, out, quiet=quiet)
    if as_json:
        write_json(record)
    else:
        write_lines(_shown(record))


def _shown(record: dict[str, Any]) -> list[str]:
    """The lines of a record, by the kind of evaluation it holds."""
    from bertsmith.cli.views.results import proof_lines, side_lines
    from bertsmith.report.corrections import correction_side
    from bertsmith.report.written_texts import writing_side

    if record["kind"] == "correct":
        return side_lines(correction_side(record, ""))
    lines = proof_lines(record, most=SHOWN_CLASSES)
    more = side_lines(writing_side(record, "")) if record["kind"] == "write" else []
    return [*lines, *more]


def _published(
    what: list[str], answers: Path, spec: DataSpec, on_error: OnError, *, quiet: bool
) -> dict[str, Any]:
    from bertsmith.cli.shared.published_answers import score_answers

    if len(what) != 1:
        raise ConfigError(
            "with --predictions, give one file of questions: "
            "bertsmith evaluate --predictions answers.json dev.json"
        )
    return score_answers(answers, Path(what[0]), spec, on_error=on_error, quiet=quiet)


def _model(
    what: list[str],
    spec: DataSpec,
    on_error: OnError,
    computing: GraphEvaluationOptions,
    out: Path | None,
    *,
    quiet: bool,
) -> dict[str, Any]:
    from bertsmith.api.evaluate import EvaluateRequest, run_evaluate
    from bertsmith.cli.views.observer import ConsoleObserver

    if len(what) != 2:
        raise ConfigError(
            "give a fine-tuned folder and a file of labeled rows: "
            "bertsmith evaluate my-model test.tsv"
        )
    folder, graph = what[0], computing.knowledge
    return run_evaluate(
        EvaluateRequest(
            model=folder,
            data=Path(what[1]),
            load=lambda: load_fine_tuned(folder, computing, quiet=quiet, knowledge=graph),
            spec=spec,
            on_error=on_error,
            out=out,
            device=computing.device,
            knowledge=graph,
            observer=ConsoleObserver(quiet=quiet),
        )
    )
