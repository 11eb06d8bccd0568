"""The texts of .txt, .tsv, .csv and .jsonl files (plain, .gz or .zst) and of standard input."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from bertsmith.errors import InputFileError, unknown
from bertsmith.files.csv_records import Record, column_place, columns_there, table_records
from bertsmith.files.faults import BadRowError, counted, shown
from bertsmith.files.lines import Lines
from bertsmith.files.streams import FileSource, format_suffix
from bertsmith.files.strict_json import AS_WRITTEN, parse_value, type_name

Format = Literal["txt", "tsv", "csv", "jsonl"]
FORMATS: tuple[str, ...] = get_args(Format)
USUAL_FIELDS = ("text", "sentence", "content")
SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(slots=True)
class ReadingAccount:
    """Counts of a reader: nothing is dropped or repaired without being counted here."""

    texts: int = 0
    empty: int = 0
    surrogates: int = 0
    blank_rows: int = 0
    """Empty lines of a .jsonl or of a table of several columns: no record stands there."""

    def notes(self) -> list[str]:
        """What a user should know, in plain sentences."""
        notes = []
        if self.empty:
            notes.append(
                f"{counted(self.empty, 'empty text')} included, so that rows and lines match"
            )
        if self.surrogates:
            notes.append(f"{counted(self.surrogates, 'lone surrogate')} replaced by U+FFFD")
        if self.blank_rows:
            notes.append(f"{counted(self.blank_rows, 'blank line')} without a record passed over")
        return notes


NO_COLUMNS: Mapping[str, str] = {}
TextRow = tuple[str, Mapping[str, str]]
"""A text, and the other columns of its row if they are wanted."""


class TextRows(Iterator[TextRow]):
    """The rows of one source as a stream, with an account of what was counted."""

    def __init__(
        self, lines: Lines, rows: Callable[[Lines, ReadingAccount], Iterator[TextRow]]
    ) -> None:
        self.account = ReadingAccount()
        self._lines = lines
        self._rows = rows(lines, self.account)

    def __next__(self) -> TextRow:
        row = next(self._rows)
        self.account.texts += 1
        self.account.empty += not row[0]
        return row

    @property
    def encoding(self) -> str:
        """The encoding in use: the declared one, or that of the byte order mark."""
        return self._lines.encoding

    @property
    def share(self) -> float | None:
        """The part of the file that was read, 0 to 1; None for standard input and pipes."""
        return self._lines.share


class Texts(Iterator[str]):
    """The texts alone."""

    def __init__(self, rows: TextRows) -> None:
        self._rows = rows
        self.account = rows.account

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
    source: FileSource,
    *,
    field: str | int | None = None,
    encoding: str = "utf-8",
    format: Format | None = None,
) -> Texts:
    """Open a source and give its texts one by one, in memory that does not grow with the file.

    `field` picks a column: by its name (the first row of a table is then its header) or by its
    number from 1 (every row then holds a text). Without it a column called text, sentence or
    content is taken, or the only one there is.
    """
    return Texts(
        read_text_rows(source, field=field, encoding=encoding, format=format, columns=False)
    )


def read_text_rows(
    source: FileSource,
    *,
    field: str | int | None = None,
    encoding: str = "utf-8",
    format: Format | None = None,
    columns: bool = True,
) -> TextRows:
    """The same with the other columns of each row, by name or, without a header, by number.

    Values of JSON are texts as the file writes them; null is no value.
    """
    kind = format or _format_of(source)
    if kind not in FORMATS:
        raise unknown("format", kind, FORMATS)
    if kind == "txt" and field is not None:
        raise InputFileError(f"{source} is read as lines of text, which have no field {field!r}")
    lines = Lines(source, encoding)
    if kind == "txt":
        return TextRows(lines, lambda lines, account: ((t, NO_COLUMNS) for t in _text_lines(lines)))
    if kind == "jsonl":
        return TextRows(
            lines, lambda lines, account: _json_rows(lines, account, field, columns=columns)
        )
    records = table_records(lines, "\t" if kind == "tsv" else ",", quoted=kind == "csv")
    return TextRows(
        lines, lambda lines, account: _table_rows(records, lines, account, field, columns=columns)
    )


def json_text(line: str, field: str | int | None) -> str:
    """The text of a JSON row: the row itself if it is a string, else one field of the object."""
    return _json_field(line, field)[0]


def _json_field(line: str, field: str | int | None) -> tuple[str, str]:
    """The text of a JSON row and the key that it stands under, "" if there is none."""
    try:
        row = parse_value(line)
    except BadRowError as fault:
        fault.line = None  # within the row, which is one line of its file
        raise
    if isinstance(row, str) and field is None:
        return row, ""
    if isinstance(row, list) and isinstance(field, int):
        row = {str(i): value for i, value in enumerate(row, start=1)}
    if not isinstance(row, dict):
        wanted = "a string or an object" if field is None else f"an object with the key {field!r}"
        raise BadRowError(f"the row is {type_name(row)}, not {wanted}", "correct the row")
    name = str(field) if field is not None else _usual_key(row)
    if name not in row:
        keys = ", ".join(shown(key) for key in list(row)[:20])
        raise BadRowError(
            f"there is no key {name!r}; the keys are {keys or 'none'}",
            "pick another one with --field NAME",
        )
    if not isinstance(row[name], str):
        raise BadRowError(
            f"{name!r} is {type_name(row[name])}, not a string", "quote it in the file"
        )
    return str(row[name]), name


def replace_surrogates(text: str) -> tuple[str, int]:
    """The text with U+FFFD for lone surrogates, which JSON can spell and no file can hold."""
    if text.isascii() or not SURROGATE.search(text):
        return text, 0
    return SURROGATE.subn("\ufffd", text)


def _format_of(source: FileSource) -> str:
    if source == "-":
        return "txt"
    suffix = format_suffix(source)
    if suffix not in FORMATS:
        ending = f".{suffix}" if suffix else "a name without a suffix"
        raise InputFileError(
            f"{source}: {ending} is not one of .txt .tsv .csv .jsonl (each may be .gz or .zst); "
            "set --format, for example --format txt for one text per line"
        )
    return suffix


def _text_lines(lines: Lines) -> Iterator[str]:
    for line in lines:
        if not isinstance(line, str):
            raise line.error(lines.name, lines.number)
        yield line


def _table_rows(
    records: Iterator[Record],
    lines: Lines,
    account: ReadingAccount,
    field: str | int | None,
    *,
    columns: bool,
) -> Iterator[TextRow]:
    """The rows of a table by one column; every record must be as wide as the first."""
    column = width = -1
    others: list[tuple[int, str]] = []
    for line, _, cells in records:
        if isinstance(cells, BadRowError):
            raise cells.error(lines.name, line)
        if width < 0:
            width = len(cells)
            column, header = _choose_column(cells, lines, field)
            if columns:
                others = _other_columns(cells, column, lines, header=header)
            if header:
                continue
        if len(cells) == width:
            yield cells[column], {name: cells[i] for i, name in others} if others else NO_COLUMNS
        elif cells == [""]:
            account.blank_rows += 1
        else:
            raise InputFileError(
                f"{lines.name}, line {line}: {len(cells)} columns, but the first row has {width}; "
                "put quotes around a field that holds the separator (.csv), or remove the stray "
                "separator"
            )


def _other_columns(
    first: list[str], column: int, lines: Lines, *, header: bool
) -> list[tuple[int, str]]:
    """The places and names of all columns but one; their numbers where there is no header."""
    names = [name.strip() for name in first] if header else [str(i + 1) for i in range(len(first))]
    others = [(i, name) for i, name in enumerate(names) if i != column]
    for i, name in others:
        if name in [other for j, other in others if j < i]:
            raise InputFileError(
                f"{lines.name}, line 1, column {i + 1}: two columns are called {shown(name)}; "
                "rename one of them"
            )
    return others


def _choose_column(first: list[str], lines: Lines, field: str | int | None) -> tuple[int, bool]:
    """The index of the column to read, and whether the first row is a header."""
    place = f"{lines.name}, line 1"
    if field is not None:
        names = None if isinstance(field, int) else first
        return column_place(field, names, len(first), place), names is not None
    usual = [i for i, name in enumerate(first) if name.strip().lower() in USUAL_FIELDS]
    if len(usual) == 1:
        return usual[0], True
    if len(first) == 1:
        return 0, False
    raise InputFileError(
        f"{place}: which column holds the texts? {columns_there(first, len(first))}; pick one "
        "with --field NAME (the first row is a header) or --field NUMBER (it is not)"
    )


def _json_rows(
    lines: Lines, account: ReadingAccount, field: str | int | None, *, columns: bool
) -> Iterator[TextRow]:
    for line in _text_lines(lines):
        if not line.strip():
            account.blank_rows += 1
            continue
        try:
            text, key = _json_field(line, field)
        except BadRowError as fault:
            raise fault.error(lines.name, lines.number) from fault
        text, replaced = replace_surrogates(text)
        account.surrogates += replaced
        yield text, _json_columns(line, key) if columns else NO_COLUMNS


def _json_columns(line: str, text_key: str) -> Mapping[str, str]:
    """The values of a row that was parsed before, as text: numbers as the file writes them."""
    row = AS_WRITTEN.decode(line)
    if not isinstance(row, dict):
        return NO_COLUMNS
    return {
        replace_surrogates(key)[0]: replace_surrogates(_as_text(value))[0]
        for key, value in row.items()
        if key != text_key and value is not None
    }


def _as_text(value: object) -> str:
    if isinstance(value, str):  # also a number with a point, as written
        return str(value)
    return json.dumps(value, ensure_ascii=False)


def _usual_key(row: dict[str, object]) -> str:
    usual = [key for key in row if key.lower() in USUAL_FIELDS]
    if len(usual) == 1:
        return usual[0]
    if len(row) == 1:
        return next(iter(row))
    keys = ", ".join(shown(key) for key in list(row)[:20])
    raise BadRowError(f"which key holds the text? {keys}", "pick one with --field NAME")
