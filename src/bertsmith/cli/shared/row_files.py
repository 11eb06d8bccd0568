"""Files of rows that a model answers: the options and the printing of the commands that do so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from bertsmith.cli.shared.console import note, write_json_lines, write_lines
from bertsmith.cli.shared.data_options import LINES, DataOptions, TextOptions
from bertsmith.cli.shared.options import Json, Quiet
from bertsmith.errors import ConfigError, InputFileError
from bertsmith.setting import OUTPUT, Setting

if TYPE_CHECKING:
    from bertsmith.labeled.read.reader import OnError
    from bertsmith.labeled.spec import DataSpec
    from bertsmith.runtime.answer_files import AnsweredRows
    from bertsmith.runtime.answers import Answerer
    from bertsmith.runtime.row_files import RowSource

Counts = Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerOutput:
    """Where answers go, and in which form."""

    out: Annotated[
        Path | None,
        Setting(
            "Output: rows of a file with their answers, .jsonl, .csv or .tsv; JSONL to stdout if "
            "unset.",
            OUTPUT,
            metavar="FILE",
        ),
    ] = None
    as_json: Json = False
    quiet: Quiet = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerWords:
    """How a command names what it did with rows.

    `lines` are further results and `notes` remarks, both made of what was counted.
    """

    command: str
    done: str
    result: str
    lines: Callable[[Counts], Sequence[str]] = lambda counts: ()
    notes: Callable[[Counts], Sequence[str]] = lambda counts: ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RowInput:
    """A file of rows: how it is read, and what happens to rows that cannot be."""

    path: Path
    spec: DataSpec
    on_error: OnError = "stop"


def folder_and_input(what: Sequence[str], *, folder: str, example: str) -> tuple[str, str]:
    """The two arguments of such a command; `folder` says of which kind the first one is."""
    if len(what) != 2:
        raise ConfigError(f"give {folder}, and a file or a text in quotes: bertsmith {example}")
    return what[0], what[1]


def check_out(given: str, out: Path | None, *, from_file: bool) -> None:
    """Refuse --out for a text."""
    if out is not None and not from_file:
        raise InputFileError(f"{given} is read as a text; --out is for files")


@contextmanager
def rows_of(given: str, reading: DataOptions | TextOptions, rows: int | None) -> Iterator[RowInput]:
    """The file, or standard input, which is a text per line unless its format is given."""
    from bertsmith.labeled.texts import spooled_input

    spec = reading.spec(rows)
    if given != "-":
        yield RowInput(path=Path(given), spec=spec, on_error=reading.on_error)
        return
    lines = spec if spec.format else spec.model_copy(update={"format": LINES})
    with spooled_input() as spooled:
        yield RowInput(path=spooled, spec=lines, on_error=reading.on_error)


def answer_rows(
    answerer: Answerer[Any],
    rows: RowInput,
    *,
    folders: Sequence[str | Path],
    output: AnswerOutput,
    words: AnswerWords,
) -> None:
    """Answer every row of a file, to `output`; the models of the answerer lie in `folders`."""
    from bertsmith.cli.views.observer import ConsoleObserver
    from bertsmith.runtime.answer_files import answered_lines
    from bertsmith.runtime.row_files import check_rows, kind_of

    kind = "jsonl" if output.out is None else kind_of(output.out)  # a wrong name, before the work
    observer = ConsoleObserver(quiet=output.quiet)
    observer.data(rows.path, rows.spec)
    source = check_rows(
        rows.path, rows.spec, answerer, on_error=rows.on_error, every_column=kind != "jsonl"
    )
    for remark in source.account.notes():
        observer.note(f"{rows.path.name}: {remark}")
    counts: Counter[str] = Counter()
    if output.out is not None:
        counts = _to_file(answerer, source, output.out, folders, words, quiet=output.quiet)
    else:
        for lines in answered_lines(answerer, source, counts):
            write_json_lines(lines)
    for remark in words.notes(counts):
        observer.note(remark)


def _to_file(
    answerer: Answerer[Any],
    source: RowSource,
    out: Path,
    folders: Sequence[str | Path],
    words: AnswerWords,
    *,
    quiet: bool,
) -> Counter[str]:
    """The rows with their answers in a file; what was counted."""
    from bertsmith.cli.views.progress import meter
    from bertsmith.folders.keys import model_key
    from bertsmith.runtime.answer_files import answer_file

    try:
        with meter(words.command, quiet=quiet) as shown:
            done = answer_file(
                answerer,
                source,
                out,
                model=" ".join(model_key(one) for one in folders),
                watch=lambda rows, total: shown(rows, rows / total if total else None),
            )
    except (KeyboardInterrupt, SystemExit):
        note("stopped; the same command resumes from the last rows written", quiet=quiet)
        raise
    if done.replaced:
        note(
            "started over: the unfinished output was of other rows, options or another model",
            quiet=quiet,
        )
    if done.resumed:
        note(f"resumed after {done.resumed:,} rows of an earlier run", quiet=quiet)
    write_lines(_summary(done, source, out, words))
    return done.counts


def _summary(done: AnsweredRows, source: RowSource, out: Path, words: AnswerWords) -> list[str]:
    """What was done with how many rows."""
    from bertsmith.wording import counted

    account = source.account
    answered = done.rows - account.empty
    engine = f" by {done.engine}" if done.engine else ""
    lines = [f"{out}: {answered:,} of {account.rows_in:,} rows {words.done}{engine}"]
    if account.empty:
        lines.append(f"empty: {counted(account.empty, 'row')} written without {words.result}")
    if account.rows_rejected:
        lines.append(f"rejected: {account.rows_rejected:,}, in {source.path}.rejected.jsonl")
    return [*lines, *words.lines(done.counts)]
