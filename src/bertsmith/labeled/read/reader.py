"""A file of examples as a stream: every row accepted or rejected; source rows for output."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from bertsmith.errors import ConfigError, InputFileError, RowsError, unknown
from bertsmith.files.atomic_file import StagedFile
from bertsmith.files.faults import BadRowError
from bertsmith.files.lines import Lines
from bertsmith.files.strict_json import parse_row
from bertsmith.labeled.example import TARGETS, Example, Tagged
from bertsmith.labeled.formats import FORMATS
from bertsmith.labeled.formats.objects import plain, string
from bertsmith.labeled.guess.guess_spec import guess_spec
from bertsmith.labeled.read.reject import Reject, RowAccount, reject_of
from bertsmith.labeled.spec import OBJECTS, Column, DataSpec

log = logging.getLogger(__name__)

ENDING = ".rejected.jsonl"
CHUNK = 1 << 18


def rejects_path(path: Path) -> Path:
    """Where the rejected rows of a file go."""
    return path.with_name(path.name + ENDING)


def original(path: Path) -> Path | None:
    """The file whose rejected rows these are; None for any other file."""
    name = path.name.removesuffix(ENDING)
    return path.with_name(name) if name and name != path.name else None


class RejectsFile:
    """Rejected rows on their way to disk; the file appears whole, at the end, or not at all."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: StagedFile | None = None

    def write(self, reject: Reject) -> None:
        """Append one row: where it stood, what was wrong, and what it holds."""
        if self._file is None:
            self._file = StagedFile(self.path)
        row = {
            "line": reject.line,
            "column": reject.column,
            "reason": reject.reason,
            "advice": reject.advice,
            "raw": reject.raw,
        }
        if reject.id is not None:
            row["id"] = reject.id
        # Escapes keep the row one line for every reader, and halves of characters writable.
        plain = reject.raw.isprintable() or reject.raw.replace("\t", "").isprintable()
        self._file.write(json.dumps(row, ensure_ascii=not plain).encode() + b"\n")

    def commit(self) -> None:
        """Put the file in place; one that stands there and differs (repairs?) becomes .old."""
        if self._file is None:
            return
        if self.path.is_file() and not _equal(self.path, self._file):
            self.path.replace(self.path.with_name(self.path.name + ".old"))
        self._file.commit()
        self._file = None

    def drop(self) -> None:
        """Forget the rows; nothing is left behind."""
        if self._file is not None:
            self._file.drop()


def _equal(path: Path, staged: StagedFile) -> bool:
    staged.stream.flush()
    staged.stream.seek(0)
    with path.open("rb") as standing:
        while True:
            old, new = standing.read(CHUNK), staged.stream.read(CHUNK)
            if old != new or not old:
                return old == new


def read_rejected(path: Path, spec: DataSpec, account: RowAccount) -> Iterator[Example | Reject]:
    """The rows of such a file, read from their `raw` as if it stood in the original."""
    lines = Lines(path)
    source = str(original(path) or path)
    read = FORMATS[spec.format or "delimited"].read
    for line in lines:
        try:
            if not isinstance(line, str):
                raise line
            if not line.strip():
                continue
            row = parse_row(line)
            raw, first = string(row, "raw"), row.get("line")
            piece = Lines.of_text(source, raw, first if type(first) is int else 1)
            for item in read(piece, spec, account, piece=True):
                if isinstance(item, Reject):
                    yield replace(item, source=lines.name, line=lines.number)
                else:
                    yield item
        except BadRowError as fault:
            text = line if isinstance(line, str) else line.raw
            yield reject_of(fault, lines.name, lines.number, text, part="field")


OnError = Literal["stop", "skip"]
NAMED_FAULTS = 20
READ_ON = 200_000  # rows after the first fault; the others are not read to be counted
SECONDS_BETWEEN_LINES = 5.0
ROWS_BETWEEN_LOOKS = 10_000  # at the clock


class _ReadingLog:
    """Tells how far a long reading is, every few seconds of reading; called for each row."""

    def __init__(self, rows: Examples) -> None:
        self._rows = rows
        self._told = self._stopped = time.monotonic()

    def __call__(self) -> None:
        count = self._rows.account.rows_in
        if count % ROWS_BETWEEN_LOOKS or time.monotonic() - self._told < SECONDS_BETWEEN_LINES:
            return
        self._told = time.monotonic()
        share = self._rows.share
        percent = "" if share is None else f" ({share:.0%})"
        log.info("reading %s%s: %s rows", self._rows.path, percent, f"{count:,}")

    def stop(self) -> None:
        """The row is used: that is not reading, and has progress of its own."""
        self._stopped = time.monotonic()

    def start(self) -> None:
        """Reading goes on."""
        self._told += time.monotonic() - self._stopped


class Examples(Iterator[Example]):
    """The examples of one file; `account` counts its rows, `spec` is how it is read."""

    def __init__(
        self,
        path: Path,
        spec: DataSpec,
        on_error: OnError,
        rejects: Path,
        *,
        may_be_empty: bool = False,
    ) -> None:
        self.account = RowAccount()
        self.spec = spec
        self.faults: list[Reject] = []
        """The first rejected rows, without what they hold."""
        self.path = path
        self._may_be_empty = may_be_empty
        self._rejects = RejectsFile(rejects)
        self._unread = False  # reading ended before the last row
        self._lines: Lines | None = None
        self._examples = self._run(skip=on_error == "skip")

    def __next__(self) -> Example:
        return next(self._examples)

    @property
    def share(self) -> float | None:
        """The part of the file that was read, 0 to 1; None where its size means nothing."""
        return self._lines.share if self._lines else None

    def close(self) -> None:
        """End before the last row; no file of rejected rows is written."""
        self._examples.close()  # type: ignore[attr-defined]

    def _rows(self) -> Iterator[Example | Reject]:
        if original(self.path) is not None:
            return read_rejected(self.path, self.spec, self.account)
        self._lines = Lines(self.path, self.spec.encoding or "utf-8")
        read = FORMATS[self.spec.format or "delimited"].read
        return read(self._lines, self.spec, self.account)

    def _run(self, *, skip: bool) -> Iterator[Example]:
        account = self.account
        last: float = math.inf  # row to be read: after a fault, only to name others
        watch = _ReadingLog(self)
        try:
            for row in self._rows():
                account.rows_in += 1
                watch()
                if isinstance(row, Example):
                    account.rows_ok += 1
                    if last == math.inf:
                        watch.stop()
                        yield row
                        watch.start()
                else:
                    account.rows_rejected += 1
                    self._keep(row, write=skip)
                    if not skip:
                        last = min(last, account.rows_in + (0 if row.swallows else READ_ON))
                if account.rows_in == self.spec.rows:
                    break
                if account.rows_in >= last:
                    self._unread = True
                    break
            self._judge(skip=skip)
            self._rejects.commit()
        except InputFileError as error:
            # A file that breaks off: the faults before it are reported, too.
            if not self.faults or isinstance(error, RowsError):
                raise
            raise RowsError(
                f"{error}\n{self._faults()}", self.faults, account.rows_rejected
            ) from error
        finally:
            self._rejects.drop()
            if self._lines is not None:
                self._lines.close()

    def _keep(self, reject: Reject, *, write: bool) -> None:
        if len(self.faults) < NAMED_FAULTS:
            self.faults.append(replace(reject, raw=""))
        if write:
            self._rejects.write(reject)

    def _judge(self, *, skip: bool) -> None:
        account = self.account
        if account.rows_in == 0 and not self._may_be_empty:
            raise InputFileError(
                f"{self.path}, line 1, column 1: the file holds no rows; give one that does"
            )
        if account.rows_rejected and (not skip or account.rows_ok == 0):
            way = "" if account.rows_ok == 0 else self._way_out()
            raise RowsError(self._faults() + way, self.faults, account.rows_rejected)

    def _faults(self) -> str:
        account = self.account
        more = account.rows_rejected - len(self.faults)
        first = "the first " if self._unread else ""
        lines = [
            f"{self.path}: {account.rows_rejected:,} of {first}{account.rows_in:,} rows cannot be "
            "used",
            *(f"  {fault}" for fault in self.faults),
        ]
        lines += [f"  and {more:,} more"] if more else []
        return "\n".join([*lines, "  the rest of the file was not read"] if self._unread else lines)

    def _way_out(self) -> str:
        return (
            "\ncorrect them, or read on without them by --on-error skip, which writes them to "
            f"{self._rejects.path.name}"
        )


def read_examples(
    path: Path,
    spec: DataSpec | None = None,
    *,
    on_error: OnError = "stop",
    rejects: Path | None = None,
    may_be_empty: bool = False,
) -> Examples:
    """Give the examples of a file one by one, in memory that does not grow with it.

    What `spec` leaves open is guessed. "stop" raises RowsError with the first faults and their
    number, reading up to `READ_ON` rows behind the first one; "skip" leaves bad rows out and
    writes them to `rejects`, by default PATH.rejected.jsonl. Such a file, repaired, is read as the
    original is. A file without rows is an error unless it `may_be_empty`.
    """
    if on_error not in get_args(OnError):
        raise unknown("way to handle errors", on_error, get_args(OnError))
    given = spec or DataSpec()
    if given.format is None or not given.why:
        given = guess_spec(original(path) or path, given=given)
    _check_task(path, given)
    place = rejects or rejects_path(path)
    return Examples(path, given, on_error, place, may_be_empty=may_be_empty)


def _check_task(path: Path, spec: DataSpec) -> None:
    """Refuse a task whose targets the format cannot hold; without labels any will do."""
    kind, held = spec.target_kind, FORMATS[spec.format or "delimited"].targets
    if kind is not None and kind.name not in held and spec.label != ():
        tasks = ", ".join(TARGETS[name].task for name in held)
        raise ConfigError(
            f"{path} is read as {spec.format}, which holds labels for {tasks}, not {spec.task}; "
            "set another --format or --task"
        )


TABLES = ("delimited", "swag")
LINE_BREAKS = str.maketrans({"\n": " ", "\r": " ", "\u2028": "\\u2028", "\u2029": "\\u2029"})


@dataclass(frozen=True, slots=True)
class SourceRow:
    """One row of a file: cells by the names of their columns, or the JSON object as written."""

    cells: Mapping[str, object]
    raw: str | None = None

    @property
    def columns(self) -> Mapping[str, object]:
        """Values by column or key."""
        return self.cells if self.raw is None else parse_row(self.raw)

    def json_start(self) -> str:
        """The row as a JSON object on one line, without its last bracket; numbers as written."""
        if self.raw is not None:
            # A line break in a JSON text stands between values: a space will do.
            return self.raw.strip().translate(LINE_BREAKS)[:-1].rstrip()
        return json.dumps(self.cells, ensure_ascii=False).translate(LINE_BREAKS)[:-1]

    def cell(self, name: str) -> str:
        """A value as a table shows it, "" if the row has none."""
        value = self.columns.get(name)
        if isinstance(value, dict | list):
            return json.dumps(value, ensure_ascii=False)
        return plain(value)


class SourceRows(Iterator[tuple[Example, SourceRow]]):
    """The rows of a file, one by one, in memory that does not grow with it."""

    def __init__(
        self, path: Path, spec: DataSpec, *, on_error: OnError = "stop", also: tuple[str, ...] = ()
    ) -> None:
        """`also` are columns that the examples must have as extras."""
        self.spec = _with_all_columns(spec, also)
        self.rows: Examples = read_examples(path, self.spec, on_error=on_error)

    def __next__(self) -> tuple[Example, SourceRow]:
        example = next(self.rows)
        if self.spec.format == "lines":
            return example, SourceRow({"text": example.texts[0]})
        if self.spec.format in TABLES:
            return example, SourceRow(example.extra)
        if self.spec.format in OBJECTS:
            return example, SourceRow({}, self.rows.account.raw)
        return example, SourceRow(_parts(example))

    def close(self) -> None:
        """End before the last row."""
        self.rows.close()


def _with_all_columns(spec: DataSpec, also: tuple[str, ...]) -> DataSpec:
    extra: tuple[Column, ...] = tuple(spec.extra or ())
    if spec.format in TABLES:
        names = spec.columns
        if isinstance(names, tuple):
            double = sorted({name for name in names if names.count(name) > 1})
            if double:
                raise ConfigError(
                    f"{names.count(double[0])} columns are called {double[0]!r}, so their cells "
                    "cannot be distinguished in the result; rename one of them"
                )
        # By number: a column may have no name, or one that looks like a number.
        extra = tuple(range(1, (len(names) if isinstance(names, tuple) else names or 1) + 1))
    else:
        extra = (*extra, *(name for name in also if name not in extra))
    return spec.model_copy(update={"extra": extra})


def _parts(example: Example) -> dict[str, object]:
    """The parts of a row whose format is neither a table nor one object per row."""
    parts: dict[str, object] = {"id": example.id, **example.extra}
    if len(example.texts) == 1:
        text = example.texts[0]
        units = example.target.units if isinstance(example.target, Tagged) else example.units
        parts["text"] = text
        if units:
            parts["words"] = [text[start:end] for start, end in units]
    elif len(example.texts) == 2:
        parts |= {"question": example.texts[0], "context": example.texts[1]}
    else:
        parts |= {"context": example.texts[0], "choices": list(example.texts[1:])}
    return parts
