"""`bertsmith predict`: predictions of a fine-tuned model for a text or the rows of a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bertsmith.cli.shared.console import note, write_json, write_lines
from bertsmith.cli.shared.data_options import DataOptions, FirstRows, is_data_file
from bertsmith.cli.shared.inference import PredictionOptions, load_fine_tuned
from bertsmith.cli.shared.options_of import spread
from bertsmith.cli.shared.row_files import (
    AnswerOutput,
    AnswerWords,
    Counts,
    RowInput,
    answer_rows,
    check_out,
    folder_and_input,
    rows_of,
)
from bertsmith.errors import ConfigError, InputFileError
from bertsmith.setting import DATA, Setting

if TYPE_CHECKING:
    from bertsmith.runtime.predictor import Predictor

What = Annotated[
    list[str],
    typer.Argument(metavar="DIR FILE|TEXT", help="Fine-tuned model folder, then a file or a text."),
]
Pair = Annotated[
    list[str] | None,
    Setting(
        "Second text; the context of a question, or a choice. Repeatable.",
        DATA,
        metavar="TEXT",
    ),
]
SHOWN_LABELS = 5


@spread
def predict(
    what: What,
    computing: PredictionOptions,
    reading: DataOptions,
    output: AnswerOutput,
    pair: Pair = None,
    rows: FirstRows = None,
) -> None:
    """Predict a text, or every row of a file, with a fine-tuned model.

    A file may have any size; all of its columns are kept, rows stay in order, and the same command
    resumes after an interruption.

    Examples:

        bertsmith predict my-model "a fine film"

        bertsmith predict my-model reviews.csv --out predictions.csv

        bertsmith predict qa-model "Who wrote it?" --pair "It was written by Ada."

        cat texts.txt | bertsmith predict my-model -
    """
    folder, given = folder_and_input(
        what, folder="a fine-tuned model folder", example='predict my-model "a text"'
    )
    predictor = load_fine_tuned(
        folder, computing, quiet=output.quiet, knowledge=computing.knowledge
    )
    from_file = given == "-" or (not pair and is_data_file(given))
    if pair and output.out is not None:
        raise InputFileError(f"{given} is read as a text because of --pair; --out is for files")
    check_out(given, output.out, from_file=from_file)
    if not from_file:
        _one(predictor, (given, *(pair or ())), as_json=output.as_json)
        return
    with rows_of(given, reading, rows) as source:
        _file(predictor, folder, source, output)


def _file(predictor: Predictor, folder: str, rows: RowInput, output: AnswerOutput) -> None:
    from bertsmith.labeled.guess.infer_spec import infer_spec
    from bertsmith.runtime.answers import RowPredictions
    from bertsmith.runtime.ensemble import Ensemble, runs_below
    from bertsmith.runtime.row_files import trained_spec

    task = predictor.task
    spec = infer_spec(
        rows.path,
        rows.spec,
        trained_spec(Path(folder)),
        task.name,
        labeled=False,
        target=task.kind.target,
    )
    answerer = RowPredictions(predictor)

    def cut(counts: Counts) -> Sequence[str]:
        if not counts["cut"]:
            return ()
        return [f"truncated: {counts['cut']:,} rows; the column tokens_cut has the lost tokens"]

    answer_rows(
        answerer,
        replace(rows, spec=spec),
        folders=runs_below(Path(folder)) if isinstance(predictor, Ensemble) else [folder],
        output=output,
        words=AnswerWords(
            command="predict",
            done="predicted",
            result="a prediction",
            lines=cut,
            notes=lambda counts: [str(answerer.unknown(counts))],
        ),
    )


def _one(predictor: Predictor, texts: tuple[str, ...], *, as_json: bool) -> None:
    from bertsmith.cli.views.predict import prediction_lines
    from bertsmith.text.encoding import UnknownTokens

    if not texts[0].strip():
        raise ConfigError("the text is empty; give one in quotes")
    unknown = UnknownTokens()
    prediction = predictor.predict([texts], unknown=unknown)[0]
    if unknown.is_high:
        note(str(unknown))
    if as_json:
        write_json({"texts": list(texts), **prediction.to_json()})
    else:
        choices = () if predictor.task.kind.pools_passages else texts[1:]
        write_lines(prediction_lines(prediction, most=SHOWN_LABELS, choices=choices))
