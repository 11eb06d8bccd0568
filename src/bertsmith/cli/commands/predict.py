"""`bertsmith predict`: predictions of a fine-tuned model for a text or the rows of a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bertsmith.cli.shared.console import note, write_json, write_json_lines, write_lines
from bertsmith.cli.shared.data_options import DataOptions, FirstRows, is_data_file
from bertsmith.cli.shared.inference import PredictionOptions, load_fine_tuned
from bertsmith.cli.shared.options import Json, Quiet
from bertsmith.cli.shared.options_of import spread
from bertsmith.errors import ConfigError, InputFileError
from bertsmith.setting import DATA, OUTPUT, Setting

if TYPE_CHECKING:
    from bertsmith.labeled.read.reader import OnError
    from bertsmith.labeled.spec import DataSpec
    from bertsmith.runtime.predictor import Predictor
    from bertsmith.runtime.row_files import RowSource

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
Out = Annotated[
    Path | None,
    Setting(
        "Output: predictions of a file as .jsonl, .csv or .tsv; JSONL to stdout if unset.",
        OUTPUT,
        metavar="FILE",
    ),
]
SHOWN_LABELS = 5


@spread
def predict(
    what: What,
    computing: PredictionOptions,
    reading: DataOptions,
    pair: Pair = None,
    rows: FirstRows = None,
    out: Out = None,
    as_json: Json = False,
    quiet: Quiet = False,
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
    from bertsmith.labeled.texts import spooled_input

    folder, given = _folder_and_input(what)
    predictor = load_fine_tuned(folder, computing, quiet=quiet, knowledge=computing.knowledge)
    path = Path(given)
    if given == "-":
        lines = reading if reading.format else replace(reading, format="lines")
        with spooled_input() as spooled:
            _file(predictor, folder, spooled, lines.spec(rows), lines.on_error, out, quiet=quiet)
    elif not pair and is_data_file(given):
        _file(predictor, folder, path, reading.spec(rows), reading.on_error, out, quiet=quiet)
    elif out is not None:
        raise InputFileError(
            f"{given} is read as a text{' because of --pair' if pair else ''}; --out is for files"
        )
    else:
        _one(predictor, (given, *(pair or ())), as_json=as_json)


def _folder_and_input(what: list[str]) -> tuple[str, str]:
    if len(what) != 2:
        raise ConfigError(
            "give a fine-tuned model folder, and a file or a text in quotes: "
            'bertsmith predict my-model "a text"'
        )
    return what[0], what[1]


def _file(
    predictor: Predictor,
    folder: str,
    path: Path,
    given: DataSpec,
    on_error: OnError,
    out: Path | None,
    *,
    quiet: bool,
) -> None:
    from bertsmith.cli.views.observer import ConsoleObserver
    from bertsmith.labeled.guess.infer_spec import infer_spec
    from bertsmith.runtime.predict_files import check_source, predicted_lines, trained_spec
    from bertsmith.runtime.row_files import kind_of
    from bertsmith.text.encoding import UnknownTokens

    kind = kind_of(out) if out is not None else "jsonl"  # refuses a wrong name before the work
    spec = infer_spec(
        path,
        given,
        trained_spec(Path(folder)),
        predictor.task.name,
        labeled=False,
        target=predictor.task.kind.target,
    )
    observer = ConsoleObserver(quiet=quiet)
    observer.data(path, spec)
    source = check_source(path, spec, predictor, on_error=on_error, every_column=kind != "jsonl")
    for remark in source.account.notes():
        observer.note(f"{path.name}: {remark}")
    if out is None:
        unknown = UnknownTokens()
        for lines in predicted_lines(predictor, source, unknown):
            write_json_lines(lines)
        observer.note(str(unknown))
    else:
        _to_file(predictor, folder, source, out, quiet=quiet)


def _to_file(
    predictor: Predictor, folder: str, source: RowSource, out: Path, *, quiet: bool
) -> None:
    from bertsmith.cli.views.progress import meter
    from bertsmith.folders.keys import model_key
    from bertsmith.runtime.ensemble import Ensemble, runs_below
    from bertsmith.runtime.predict_files import predict_file
    from bertsmith.wording import counted

    folders = runs_below(Path(folder)) if isinstance(predictor, Ensemble) else [folder]

    try:
        with meter("predict", quiet=quiet) as shown:
            done = predict_file(
                predictor,
                source,
                out,
                model=" ".join(model_key(one) for one in folders),
                watch=lambda rows, total: shown(rows, rows / total if total else None),
            )
    except (KeyboardInterrupt, SystemExit):
        note("stopped; the same command resumes from the last rows written", quiet=quiet)
        raise
    if done.replaced:
        note("started over: the unfinished output was of other rows or another model", quiet=quiet)
    if done.resumed:
        note(f"resumed after {done.resumed:,} rows of an earlier run", quiet=quiet)
    account = source.account
    predicted = done.rows - account.empty
    lines = [f"{out}: {predicted:,} of {account.rows_in:,} rows predicted by {done.engine}"]
    if account.empty:
        lines.append(f"empty: {counted(account.empty, 'row')} written without a prediction")
    if account.rows_rejected:
        lines.append(f"rejected: {account.rows_rejected:,}, in {source.path}.rejected.jsonl")
    if done.cut:
        lines.append(f"truncated: {done.cut:,} rows; the column tokens_cut has the lost tokens")
    write_lines(lines)
    note(str(done.unknown), quiet=quiet)


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
