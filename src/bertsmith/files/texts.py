"""One text after another from .txt, .tsv, .csv and .jsonl files (or .gz), or standard input."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from bertsmith.errors import InputFileError, unknown
from bertsmith.files.csv_records import csv_records, tsv_records
from bertsmith.files.lines import Lines

Format = Literal["txt", "tsv", "csv", "jsonl"]
FORMATS: tuple[str, ...] = get_args(Format)
USUAL_FIELDS = ("text", "sentence", "content")


@dataclass(slots=True)
class ReadingAccount:
    """What a reader met on its way: nothing is dropped or repaired without being counted here."""

    texts: int = 0
    empty: int = 0
    surrogates: int = 0
    blank_rows: int = 0
    """Empty lines of a .jsonl or of a table of several columns: no record stands there."""

    def notes(self) -> list[str]:
        """What a user should know, in plain sentences."""
        found = []
        if self.empty:
            found.append(f"{_count(self.empty, 'empty text')} kept, so that rows and lines match")
        if self.surrogates:
            found.append(f"{_count(self.surrogates, 'lone surrogate')} replaced by U+FFFD")
        if self.blank_rows:
            found.append(f"{_count(self.blank_rows, 'blank line')} without a record passed over")
        return found


class Texts(Iterator[str]):
    """The texts of one source as a stream, with an account of what was met on the way."""

    def __init__(
        self, lines: Lines, texts: Callable[[Lines, ReadingAccount], Iterator[str]]
    ) -> None:
        self.account = ReadingAccount()
        self._lines = lines
        self._texts = texts(lines, self.account)

    def __next__(self) -> str:
        text = next(self._texts)
        self.account.texts += 1
        self.account.empty += not text
        return text

    @property
    def encoding(self) -> str:
        """The encoding in use: the declared one, or what the byte order mark says."""
        return self._lines.encoding

    @property
    def share(self) -> float | None:
        """The part of the file that was given, 0 to 1; None for standard input and pipes."""
        return self._lines.share


def read_texts(
    source: Path | Literal["-"],
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
    kind = format or _format_of(source)
    if kind not in FORMATS:
        raise unknown("format", kind, FORMATS)
    if kind == "txt" and field is not None:
        raise InputFileError(f"{source} is read as lines of text, which have no field {field!r}")
    lines = Lines(source, encoding)
    if kind == "txt":
        return Texts(lines, lambda lines, account: lines)
    if kind == "jsonl":
        return Texts(lines, lambda lines, account: _json_texts(lines, account, field))
    records = tsv_records if kind == "tsv" else csv_records
    return Texts(lines, lambda lines, account: _column(records(lines), lines, account, field))


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _format_of(source: Path | Literal["-"]) -> str:
    if source == "-":
        return "txt"
    name = source.name.lower().removesuffix(".gz")
    suffix = name.rpartition(".")[2] if "." in name else ""
    if suffix not in FORMATS:
        ending = f".{suffix}" if suffix else "a name without an ending"
        raise InputFileError(
            f"{source}: {ending} is not one of .txt .tsv .csv .jsonl (each may be .gz); "
            "say how to read it with --format, for example --format txt for one text a line"
        )
    return suffix


def _column(
    records: Iterator[list[str]], lines: Lines, account: ReadingAccount, field: str | int | None
) -> Iterator[str]:
    """One column of a table; every record must be as wide as the first."""
    first = next(records, None)
    if first is None:
        return
    column, header = _choose_column(first, lines, field)
    if not header:
        yield first[column]
    for record in records:
        if len(record) == len(first):
            yield record[column]
        elif record == [""]:
            account.blank_rows += 1
        else:
            raise InputFileError(
                f"{lines.name}, line {lines.number}: {len(record)} columns, but the first row has "
                f"{len(first)}; put quotes around a field that holds the separator (.csv), or "
                "remove the stray separator"
            )


def _choose_column(first: list[str], lines: Lines, field: str | int | None) -> tuple[int, bool]:
    """The index of the column to read, and whether the first row is a header."""
    place = f"{lines.name}, line 1"
    if isinstance(field, int):
        if not 1 <= field <= len(first):
            raise InputFileError(
                f"{place}: there is no column {field}; columns are counted from 1 to {len(first)}"
            )
        return field - 1, False
    if field is not None:
        found = [i for i, name in enumerate(first) if name == field]
        if len(found) != 1:
            problem = "no column is" if not found else f"{len(found)} columns are"
            raise InputFileError(f"{place}: {problem} called {field!r}; {_columns(first)}")
        return found[0], True
    usual = [i for i, name in enumerate(first) if name.strip().lower() in USUAL_FIELDS]
    if len(usual) == 1:
        return usual[0], True
    if len(first) == 1:
        return 0, False
    raise InputFileError(f"{place}: which column holds the texts? {_columns(first)}")


def _columns(first: Sequence[str]) -> str:
    shown = ", ".join(f"{i}: {_short(name)!r}" for i, name in enumerate(first[:20], start=1))
    more = f" and {len(first) - 20} more" if len(first) > 20 else ""
    return (
        f"columns are {shown}{more}; pick one with --field NAME (the first row is a header) "
        "or --field NUMBER (it is not)"
    )


def _short(name: str) -> str:
    return name if len(name) <= 40 else name[:37] + "..."


def _json_texts(lines: Lines, account: ReadingAccount, field: str | int | None) -> Iterator[str]:
    """The text of each row: the row itself if it is a string, else one field of the object."""
    for line in lines:
        if not line.strip():
            account.blank_rows += 1
            continue
        text = _text_of(_parsed(line, lines), lines, field)
        yield _without_surrogates(text, account)


def _parsed(line: str, lines: Lines) -> object:
    try:
        row: object = json.loads(line, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise InputFileError(
            f"{lines.name}, line {lines.number}, column {error.colno}: not JSON: {error.msg}; "
            "each line must be one JSON string or object"
        ) from error
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else error
        raise InputFileError(f"{lines.name}, line {lines.number}: {reason}") from error
    return row


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    row = dict(pairs)
    if len(row) != len(pairs):
        names = [name for name, _ in pairs]
        double = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {double!r} stands twice in one object; remove one of them")
    return row


def _text_of(row: object, lines: Lines, field: str | int | None) -> str:
    place = f"{lines.name}, line {lines.number}"
    if isinstance(row, str) and field is None:
        return row
    if isinstance(row, list) and isinstance(field, int):
        row = {str(i): value for i, value in enumerate(row, start=1)}
    if not isinstance(row, dict):
        wanted = "a string or an object" if field is None else f"an object with the key {field!r}"
        raise InputFileError(f"{place}: found {type(row).__name__}, expected {wanted}")
    name = str(field) if field is not None else _usual_key(row, place)
    if name not in row:
        keys = ", ".join(repr(_short(key)) for key in list(row)[:20])
        raise InputFileError(f"{place}: there is no key {name!r}; the keys are {keys or 'none'}")
    if not isinstance(row[name], str):
        found = type(row[name]).__name__
        raise InputFileError(f"{place}: {name!r} is {found}, not a string; quote it in the file")
    return str(row[name])


def _usual_key(row: dict[str, object], place: str) -> str:
    usual = [key for key in row if key.lower() in USUAL_FIELDS]
    if len(usual) == 1:
        return usual[0]
    if len(row) == 1:
        return next(iter(row))
    keys = ", ".join(repr(_short(key)) for key in list(row)[:20])
    raise InputFileError(f"{place}: which key holds the text? {keys}; pick one with --field NAME")


def _without_surrogates(text: str, account: ReadingAccount) -> str:
    """The text with lone surrogates, which JSON can spell and no file can hold, as U+FFFD."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        lone = sum("\ud800" <= c <= "\udfff" for c in text)
        account.surrogates += lone
        return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)
    return text
