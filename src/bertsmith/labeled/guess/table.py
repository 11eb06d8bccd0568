"""Guesses about a table: the delimiter, quotes, the header."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from bertsmith.errors import InputFileError
from bertsmith.files.csv_records import table_records
from bertsmith.files.lines import Lines
from bertsmith.labeled.guess.columns import OWN_ID, known, plain_name, profile
from bertsmith.labeled.guess.sample import ROWS, Sample, SpecBuilder
from bertsmith.labeled.read.write import unguarded

DELIMITERS = ("\t", ",", ";", "|")
NAMES = {"\t": "tab", ",": "comma", ";": "semicolon", "|": "bar"}
USUAL = {".tsv": "\t", ".csv": ",", ".txt": "\t"}
DECLARED = (".tsv", ".csv")  # endings that name a delimiter
MOST = 0.6  # of the rows have the same number of columns, or it is no table
UNTIDY = 0.25  # what halves of quoted cells take away from it
LIKELY = 0.3  # how much evener rows must be for the unlikely kind of quoting
NAME = re.compile(r"[^.!?。！？]{1,30}")
Table = list[list[str]]


@dataclass(frozen=True, slots=True)
class TableReading:
    """The sample read in one way: how many rows, how wide they are, how many of that width."""

    delimiter: str
    quoting: str
    rows: Table
    broken: int
    fault: InputFileError | None = None  # of the first broken record

    @property
    def width(self) -> int:
        """How many columns most rows have."""
        widths = Counter(len(row) for row in self.rows)
        return max(widths, key=lambda width: (widths[width], width), default=0)

    @property
    def even(self) -> int:
        """How many rows have so many."""
        return sum(len(row) == self.width for row in self.rows)

    @property
    def share(self) -> float:
        """The part of the rows that have the usual number of columns, if there are several.

        One column is as sure as several if quoted cells hold the delimiter.
        """
        if self.width < 2:
            held = any(self.delimiter in cell for row in self.rows for cell in row)
            return float(held and self.even == len(self.rows) + self.broken)
        return self.even / max(1, len(self.rows) + self.broken)

    @property
    def ragged(self) -> bool:
        """Whether there are several columns, and most rows have another number of them."""
        named = bool(self.rows) and any(map(known, self.rows[0]))
        return self.width > 1 and self.share < MOST and not named

    @property
    def torn(self) -> float:
        """The part of the rows with a cell that holds half of a pair of quotes."""
        torn = sum(any(cell.count('"') % 2 for cell in row) for row in self.rows)
        return torn / max(1, len(self.rows))


def guess_table(sample: Sample, builder: SpecBuilder) -> tuple[list[str] | None, Table]:
    """Decide how the table is written; gives its header, if any, and rows of the sample."""
    reading = best_reading(sample, builder)
    if not reading.rows and reading.fault is not None:
        raise reading.fault
    name = NAMES.get(reading.delimiter, repr(reading.delimiter))
    counted = f"{reading.even:,} of {len(reading.rows) + reading.broken:,} rows"
    builder.put("delimiter", reading.delimiter, f"{counted} have {reading.width} columns by {name}")
    builder.put("quoting", reading.quoting, _why_quoting(reading))
    first = reading.rows[0] if reading.rows else []
    rows = [row for row in reading.rows if len(row) == reading.width]
    header, why = _header(first, [row for row in reading.rows[1:] if len(row) == len(first)])
    given = [builder.get(name) or () for name in ("text", "label") if builder.is_set(name)]
    if any(isinstance(column, str) for columns in given for column in columns):
        header, why = True, "columns are given by their names"
    builder.put("header", header, why)
    if not builder.get("header"):
        builder.put("columns", reading.width, f"{counted} have so many")
        return None, rows
    # The header decides how wide a row must be, even if the rows of the sample differ.
    names = first
    if OWN_ID in names:
        builder.put("guarded", True, f"the column {OWN_ID} shows that bertsmith wrote this table")
    if builder.get("guarded"):
        names = [unguarded(name) for name in names]
    builder.put("columns", tuple(names), "the first row")
    return names, [row for row in reading.rows[1:] if len(row) == len(names)]


def best_reading(sample: Sample, builder: SpecBuilder) -> TableReading:
    """The sample read with the delimiter and the quoting that fit best."""
    usual = USUAL.get(sample.ending, "\t")
    wanted = [builder.get("delimiter")] if builder.is_set("delimiter") else DELIMITERS
    readings = [
        _reading(sample, delimiter, quoting)
        for delimiter in wanted
        for quoting in (
            [builder.get("quoting")] if builder.is_set("quoting") else ["none", "double"]
        )
    ]
    if not builder.is_set("delimiter") and not any(reading.share for reading in readings):
        readings = [reading for reading in readings if reading.delimiter == usual]

    def rank(reading: TableReading) -> tuple[float, bool, bool, bool]:
        # Quotes are the rule in CSV and the exception in TSV: the other way must be much better,
        # or one broken quote would decide how all the rest is read.
        expected = "none" if reading.delimiter == "\t" else "double"
        wrapped = reading.quoting == "double" and _wrapped(reading.rows, sample)
        likely = reading.quoting == expected or wrapped
        share = round(reading.share - UNTIDY * reading.torn, 2)
        score = share + LIKELY * (likely and share > 0)
        return (score, reading.delimiter == usual, wrapped, reading.quoting == expected)

    best = max(readings, key=rank)
    declared = sample.ending in DECLARED and not builder.is_set("delimiter")
    if best.ragged and best.delimiter != usual and declared:
        return max((one for one in readings if one.delimiter == usual), key=rank, default=best)
    return best


def _reading(sample: Sample, delimiter: str, quoting: str) -> TableReading:
    lines = Lines.of_text("", "\n".join(sample.lines), 1)
    rows: Table = []
    broken = 0
    fault: InputFileError | None = None
    for line, _, cells in table_records(lines, delimiter, quoted=quoting == "double"):
        if not isinstance(cells, list):
            broken += 1
            fault = fault or cells.error(str(sample.path), line)
        elif cells != [""]:
            rows.append(cells)
        if len(rows) > ROWS:
            break
    return TableReading(delimiter, quoting, rows, broken, fault)


def _wrapped(rows: Table, sample: Sample) -> bool:
    """Whether nearly every line of the file has a quoted cell: the quotes are not text."""
    looked = sample.filled[1 : len(rows)]
    quoted = sum(line.count('"') >= 2 and ('"\t' in line or line.endswith('"')) for line in looked)
    return bool(looked) and quoted > 0.9 * len(looked)


def _why_quoting(reading: TableReading) -> str:
    if reading.quoting == "double":
        return "a cell in double quotes may hold the delimiter and line breaks"
    inside = sum(
        cell[:1] == cell[-1:] == '"' and len(cell) > 1 for row in reading.rows for cell in row
    )
    more = f"; {inside:,} cells of the sample stand in quotes: --quoting double removes them"
    return "quotes are text, as in most tables of this kind" + (more if inside else "")


def _header(first: Sequence[str], rows: Table) -> tuple[bool, str]:
    """Whether the first row names the columns, and why."""
    if not first:
        return False, "there is no row"
    again = list(first) in rows  # files were joined, each with its header
    others = [row for row in rows if row != first]
    below = [list(cells) for cells in zip(*others, strict=True)] or [[] for _ in first]
    named = [
        name for name, cells in zip(first, below, strict=True) if known(name) and name not in cells
    ]
    if named and (
        again or len({plain_name(name) for name in first}) == len(first) or len(named) > 1
    ):
        return True, f"columns are called {', '.join(map(repr, named[:4]))}"
    for name, cells in zip(first, below, strict=True):
        column = profile(cells)
        if column.numeric and column.filled > 1 and not profile([name]).numeric and name.strip():
            return True, f"{name[:30]!r} stands above numbers"
    looks = all(NAME.fullmatch(name) and len(name.split()) < 4 for name in first)
    if looks and len(first) > 1 and _unlike_what_is_below(first, below):
        return True, "its cells occur in no other row, and labels repeat below"
    return False, "the first row looks like the others"


def _unlike_what_is_below(first: Sequence[str], below: list[list[str]]) -> bool:
    categories = [(name, profile(cells)) for name, cells in zip(first, below, strict=True) if cells]
    few = [
        (name, column) for name, column in categories if column.category and column.distinct < 20
    ]
    return bool(few) and all(
        name not in column.cells and column.filled >= 10 * column.distinct for name, column in few
    )
