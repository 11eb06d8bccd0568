"""The texts of any data file or of standard input, guessed as labeled rows are."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bertsmith.errors import ConfigError, InputFileError
from bertsmith.files.csv_records import columns_there
from bertsmith.files.faults import BadRowError
from bertsmith.files.lines import Lines, stored_input
from bertsmith.files.streams import FileSource
from bertsmith.files.strict_json import AS_WRITTEN, parse_value, type_name
from bertsmith.labeled.guess.columns import NO_TEXTS, plain_name
from bertsmith.labeled.guess.guess_spec import guess_spec
from bertsmith.labeled.guess.sample import take_sample
from bertsmith.labeled.read.reader import Examples, OnError, read_examples
from bertsmith.labeled.spec import DataSpec
from bertsmith.wording import counted, shown

TITLES = ("title", "标题")
SURROGATE = re.compile("[\ud800-\udfff]")


def text_spec(path: Path, given: DataSpec | None = None) -> DataSpec:
    """How a file is read for one text per row; what `given` leaves open is guessed."""
    given = given or DataSpec()
    spec = guess_spec(path, given=given, labeled=False).model_copy(update={"id": given.id})
    text = spec.text or ()
    if given.text and len(given.text) > 1:
        raise ConfigError(f"{len(given.text)} text columns are given, but one text is read per row")
    if spec.why.get("text") == NO_TEXTS or len(text) > 2:
        raise _unclear(path, spec)
    if len(text) == 2:
        if plain_name(str(text[0])) not in TITLES:
            raise _unclear(path, spec)
        why = {**spec.why, "text": f"{text[0]!r} is a title; --text reads another column"}
        spec = spec.model_copy(update={"text": text[1:], "why": why})
    return spec


def _unclear(path: Path, spec: DataSpec) -> InputFileError:
    columns = spec.columns if spec.keys is None else spec.keys
    names = None if isinstance(columns, int) else columns or tuple(map(str, spec.text or ()))
    there = columns_there(names, columns if isinstance(columns, int) else len(names or ()))
    if names is None:
        there += f" (the first row is {shown(take_sample(path, spec.encoding).filled[0])})"
    what = "which column holds the texts?"
    if len(spec.text or ()) > 1:
        several = ", ".join(
            shown(one) if isinstance(one, str) else str(one) for one in spec.text or ()
        )
        what = f"columns {several} hold texts, and one text is read per row;"
    return InputFileError(
        f"{path}, line 1: {what} {there}; choose one with --text NAME or --text NUMBER"
    )


@dataclass(slots=True)
class TextAccount:
    """Counts of a reader: nothing is dropped or repaired without being counted here."""

    texts: int = 0
    empty: int = 0
    surrogates: int = 0
    blank: int = 0
    """Empty lines of JSON: no record stands there."""
    rejected: int = 0

    def notes(self) -> list[str]:
        """What a user should know, in plain sentences."""
        notes = []
        if self.empty:
            notes.append(
                f"{counted(self.empty, 'empty text')} included, so that rows and lines match"
            )
        if self.surrogates:
            notes.append(f"{counted(self.surrogates, 'lone surrogate')} replaced by U+FFFD")
        if self.blank:
            notes.append(f"{counted(self.blank, 'blank line')} without a record passed over")
        if self.rejected:
            notes.append(f"{counted(self.rejected, 'row')} rejected: they have no text here")
        return notes


TextRow = tuple[str, Mapping[str, str]]
"""A text, and the other columns of its row if they are wanted."""
NO_COLUMNS: Mapping[str, str] = {}


class TextRows(Iterator[TextRow]):
    """The rows of one source as a stream; `spec` says how it is read, `account` counts."""

    def __init__(
        self,
        source: FileSource,
        spec: DataSpec,
        on_error: OnError = "stop",
        *,
        columns: bool = True,
    ) -> None:
        """Without `columns`, only the texts are given."""
        self.account = TextAccount()
        self.spec = spec
        self._columns = columns
        self._skip = on_error == "skip"
        self._lines: Lines | None = None
        self._examples: Examples | None = None
        if spec.format == "lines" or (spec.format == "jsonl" and not _listed(source, spec)):
            self._lines = Lines(source, spec.encoding or "utf-8")
            self._rows = self._by_lines(self._lines)
        elif source != "-":
            wide = with_other_columns(spec) if columns else spec
            self._examples = read_examples(source, wide, on_error=on_error, may_be_empty=True)
            self._rows = self._by_examples(self._examples)

    def __next__(self) -> TextRow:
        row = next(self._rows)
        self.account.texts += 1
        self.account.empty += not row[0]
        return row

    @property
    def encoding(self) -> str:
        """The encoding in use: the declared one, or that of the byte order mark."""
        return self._lines.encoding if self._lines else self.spec.encoding or "utf-8"

    @property
    def share(self) -> float | None:
        """The part of the file that was read, 0 to 1; None for standard input and pipes."""
        reader = self._lines or self._examples
        return reader.share if reader is not None else None

    def _by_lines(self, lines: Lines) -> Iterator[TextRow]:
        key = str(self.spec.text[0]) if self.spec.text else None
        for line in lines:
            if self.account.texts + self.account.rejected == self.spec.rows:
                lines.close()
                return
            try:
                if not isinstance(line, str):
                    raise line
                if self.spec.format == "lines":
                    yield line, NO_COLUMNS
                elif line.strip():
                    text, replaced = replace_surrogates(json_text(line, key))
                    self.account.surrogates += replaced
                    yield text, _json_columns(line, key) if self._columns else NO_COLUMNS
                else:
                    self.account.blank += 1
            except BadRowError as fault:
                if not self._skip:
                    raise fault.error(lines.name, lines.number) from fault
                self.account.rejected += 1

    def _by_examples(self, rows: Examples) -> Iterator[TextRow]:
        for example in rows:
            if len(example.texts) != 1:
                raise InputFileError(
                    f"{example.place}: the rows of {self.spec.format} have {len(example.texts)} "
                    "texts each; write those to be read as one column of .csv, or as .txt"
                )
            yield example.texts[0], example.extra if self._columns else NO_COLUMNS
        self.account.blank = rows.account.blank
        self.account.rejected = rows.account.rows_rejected


class Texts(Iterator[str]):
    """The texts of one source as a stream, without the other columns."""

    def __init__(self, source: FileSource, spec: DataSpec, on_error: OnError = "stop") -> None:
        self._rows = TextRows(source, spec, on_error, columns=False)
        self.account = self._rows.account
        self.spec = spec

    def __next__(self) -> str:
        return next(self._rows)[0]

    @property
    def encoding(self) -> str:
        """The encoding in use: the declared one, or that of the byte order mark."""
        return self._rows.encoding

    @property
    def share(self) -> float | None:
        """The part of the file that was read, 0 to 1; None for standard input and pipes."""
        return self._rows.share


def read_texts(
    source: FileSource, given: DataSpec | None = None, *, on_error: OnError = "stop"
) -> Texts:
    """Open a source and give its texts one by one, in memory that does not grow with the file.

    What `given` leaves open is guessed: format, delimiter, header and the column of the texts.
    Standard input is read by lines; tables and JSON need `spooled_input`, or a file.
    """
    return Texts(source, _spec_of(source, given or DataSpec()), on_error)


def read_text_rows(
    source: FileSource, given: DataSpec | None = None, *, on_error: OnError = "stop"
) -> TextRows:
    """The same with the other columns of each row, by name or, without a header, as "column 2".

    Values of JSON are texts as the file writes them; null is no value.
    """
    return TextRows(source, _spec_of(source, given or DataSpec()), on_error)


def _spec_of(source: FileSource, given: DataSpec) -> DataSpec:
    if source != "-":
        return text_spec(source, given)
    if given.format not in (None, "lines", "jsonl") or (given.text and given.format != "jsonl"):
        raise InputFileError(
            "standard input is read by lines or as JSON lines; save a table to a file"
        )
    why = {"format": "standard input is read by lines"}
    return given if given.format else given.model_copy(update={"format": "lines", "why": why})


def with_other_columns(spec: DataSpec) -> DataSpec:
    """The spec that also reads every column of a table besides that of the texts."""
    columns = spec.columns
    if columns is None:
        return spec
    names = columns if isinstance(columns, tuple) else tuple(map(str, range(1, columns + 1)))
    text = {place for place in (spec.text or ()) if isinstance(place, int)}
    others = tuple(
        number
        for number, name in enumerate(names, start=1)
        if number not in text and name not in (spec.text or ())
    )
    double = [names[n - 1] for n in others if sum(names[m - 1] == names[n - 1] for m in others) > 1]
    if double:
        raise ConfigError(f"two columns are called {shown(double[0])}; rename one of them")
    return spec.model_copy(update={"extra": others})


def other_column(path: Path, spec: DataSpec, given: str) -> str:
    """The name by which rows have a column besides the texts, given by name or number from 1."""
    columns = spec.columns if spec.keys is None else spec.keys
    if not columns:
        raise InputFileError(
            f"{path} is read as {spec.format}, which has no columns but the texts; write a table "
            "(.tsv, .csv, .jsonl), or leave the column out"
        )
    names, count = (None, columns) if isinstance(columns, int) else (columns, len(columns))
    number = int(given) if given.isdecimal() else 0
    place = names.index(given) + 1 if names is not None and given in names else number
    text = (spec.text or (None,))[0]
    if not 1 <= place <= count or text in (place, names[place - 1] if names else None):
        what = "no column" if not 1 <= place <= count else "its texts in column"
        raise InputFileError(f"{path} has {what} {shown(given)}; {columns_there(names, count)}")
    return names[place - 1] if names is not None else f"column {place}"


def _json_columns(line: str, key: str | None) -> Mapping[str, str]:
    """The other values of a row that was parsed before, numbers as the file writes them."""
    row = AS_WRITTEN.decode(line)
    if not isinstance(row, dict):
        return NO_COLUMNS
    return {
        replace_surrogates(name)[0]: replace_surrogates(_as_text(value))[0]
        for name, value in row.items()
        if name != key and value is not None
    }


def _as_text(value: object) -> str:
    if isinstance(value, str):  # also a number with a point, as written
        return str(value)
    return json.dumps(value, ensure_ascii=False)


@contextmanager
def spooled_input() -> Iterator[Path]:
    """Standard input as a file, for what is read more than once."""
    with tempfile.TemporaryDirectory(prefix="bertsmith-") as folder:
        path = Path(folder) / "stdin"
        with path.open("wb") as file:
            file.writelines(stored_input())
        yield path


def _listed(source: FileSource, spec: DataSpec) -> bool:
    """Whether a file of JSON is one list instead of a row on each line."""
    if source == "-":
        return False
    lines = Lines(source, spec.encoding or "utf-8")
    try:
        return lines.first_character() == "["
    finally:
        lines.close()


def json_text(line: str, key: str | None) -> str:
    """The text of a JSON row: the row itself if it is a string, else what stands under a key."""
    try:
        row = parse_value(line)
    except BadRowError as fault:
        fault.line = None  # within the row, which is one line of its file
        raise
    if isinstance(row, str):
        return row
    if not isinstance(row, dict) or key is None:
        wanted = "a string" if key is None else f"an object with the key {key!r}"
        raise BadRowError(
            f"the row is {type_name(row)}, not {wanted}", "correct the row, or set --text"
        )
    if key not in row:
        keys = ", ".join(shown(name) for name in list(row)[:20])
        raise BadRowError(
            f"there is no key {key!r}; the keys are {keys or 'none'}",
            "choose another one with --text NAME",
        )
    if not isinstance(row[key], str):
        raise BadRowError(f"{key!r} is {type_name(row[key])}, not a string", "quote it in the file")
    return str(row[key])


def replace_surrogates(text: str) -> tuple[str, int]:
    """The text with U+FFFD for lone surrogates, which JSON can spell and no file can hold."""
    if text.isascii() or not SURROGATE.search(text):
        return text, 0
    return SURROGATE.subn("\ufffd", text)
