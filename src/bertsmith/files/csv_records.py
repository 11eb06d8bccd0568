"""Records of CSV (RFC 4180) and TSV files; a broken one is a fault and costs no other record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bertsmith.errors import InputFileError
from bertsmith.files.faults import BadRowError
from bertsmith.files.lines import Line, Lines
from bertsmith.wording import shown

LONGEST_CELL = 1 << 22  # characters of a quoted cell of several lines: a quote left open ends here
MOST_LINES = 100_000  # and so many lines
MOST_COLUMNS = 1 << 14  # as many as spreadsheets have
NEARLY_ALL = 0.9

Record = tuple[int, str, list[str] | BadRowError]
"""Line where it begins, the record as it stands in the file, its cells or what is wrong."""


def table_records(
    lines: Lines, delimiter: str, *, quoted: bool, width: int | None = None
) -> Iterator[Record]:
    """The records of a table; with `quoted`, cells may stand in double quotes (RFC 4180)."""
    found = quoted_records(lines, delimiter, width) if quoted else plain_records(lines, delimiter)
    for line, raw, cells in found:
        if isinstance(cells, list) and len(cells) > MOST_COLUMNS:
            yield line, raw, _too_wide(len(cells), delimiter)
        else:
            yield line, raw, cells


def _too_wide(width: int, delimiter: str) -> BadRowError:
    return BadRowError(
        f"{width:,} columns, and at most {MOST_COLUMNS:,} are read",
        f"remove columns, or set --delimiter if {shown(delimiter)} does not part them",
        column=MOST_COLUMNS + 1,
    )


def column_place(column: int | str, names: Sequence[str] | None, width: int, place: str) -> int:
    """The index of a column, given by its name in the header `names` or its number from 1."""
    if isinstance(column, int):
        if 1 <= column <= width:
            return column - 1
        raise InputFileError(
            f"{place}, column {column}: there is no such column; {columns_there(names, width)}"
        )
    if names is None:
        raise InputFileError(
            f"{place}: column {shown(column)} is a name, but the file is read without a "
            f"header; {columns_there(names, width)}; set --header or give numbers"
        )
    matches = [i for i, name in enumerate(names) if name == column]
    if len(matches) == 1:
        return matches[0]
    what = "no column is" if not matches else f"{len(matches)} columns are"
    way = "" if not matches else ": rename one of them, or give its number"
    raise InputFileError(
        f"{place}, column {column}: {what} called {shown(column)}{way}; "
        f"{columns_there(names, width)}"
    )


def columns_there(names: Sequence[str] | None, width: int) -> str:
    """The columns of a table as a message lists them."""
    if names is None:
        return f"columns are counted from 1 to {width}"
    some = ", ".join(f"{i}: {shown(name)}" for i, name in enumerate(names[:20], 1))
    more = f" and {width - 20} more" if width > 20 else ""
    return f"the columns are {some}{more}"


def plain_records(lines: Lines, delimiter: str) -> Iterator[Record]:
    """One record per line; quotes are ordinary characters, as in most TSV corpora."""
    for line in lines:
        if isinstance(line, str):
            yield lines.number, line, line.split(delimiter)
        else:
            yield lines.number, line.raw, line


def quoted_records(lines: Lines, delimiter: str, width: int | None) -> Iterator[Record]:
    r"""Records whose cells may be quoted: `"a, ""b"" and\na new line"` is one cell."""
    while True:
        rest = iter(lines)
        for line in rest:
            if not isinstance(line, str):
                yield lines.number, line.raw, line
            elif '"' in line:
                cells = _cells_of_line(line, delimiter)
                if cells is not None:
                    yield lines.number, line, cells
                else:
                    yield _Quoted(lines, rest, delimiter, width).record(line)
            else:
                yield lines.number, line, line.split(delimiter)
        if not lines.waiting:
            return


def _cells_of_line(line: str, delimiter: str) -> list[str] | None:
    """The cells of a record that ends on its line; None if it does not, or is malformed."""
    cells: list[str] = []
    at = 0
    while True:
        if line.startswith('"', at):
            end = line.find('"', at + 1)
            while end >= 0 and line.startswith('"', end + 1):
                end = line.find('"', end + 2)
            if end < 0:
                return None
            cells.append(line[at + 1 : end].replace('""', '"'))
            at = end + 1
            if at < len(line) and line[at] != delimiter:
                return None
        else:
            end = line.find(delimiter, at)
            if end < 0:
                cells.append(line[at:])
                return cells
            cells.append(line[at:end])
            at = end
        if at == len(line):
            return cells
        at += 1


class _Quoted:
    """Reads one record, which may span several lines."""

    def __init__(
        self, lines: Lines, rest: Iterator[Line], delimiter: str, width: int | None
    ) -> None:
        self._lines = lines
        self._rest = rest
        self._delimiter = delimiter
        self._width = width
        self._first = lines.number
        self._taken: list[tuple[Line, str]] = []

    def record(self, line: str) -> Record:
        self._taken = [(line, self._lines.ending)]
        cells: list[str] = []
        at = 0
        try:
            while True:
                if line.startswith('"', at):
                    cell, line, at = self._cell(line, at + 1, len(cells) + 1)
                    cells.append(cell)
                    if at == len(line):
                        break
                    if line[at] != self._delimiter:
                        raise self._after_quote(line[at], len(cells))
                    at += 1
                    continue
                end = line.find(self._delimiter, at)
                if end < 0:
                    cells.append(line[at:])
                    break
                cells.append(line[at:end])
                at = end + 1
        except BadRowError as fault:
            self._return_whole_records()
            return self._first, self._raw(), fault
        return self._first, self._raw(), cells

    def _cell(self, line: str, at: int, column: int) -> tuple[str, str, int]:
        """The quoted cell that opened before `at`, the line it ends on, the place after it."""
        parts: list[str] = []
        length = 0
        while True:
            end = line.find('"', at)
            if end >= 0 and line.startswith('"', end + 1):
                parts.append(line[at : end + 1])
                at = end + 2
            elif end >= 0:
                parts.append(line[at:end])
                return "".join(parts), line, end + 1
            else:
                parts += (line[at:], self._lines.ending)
                length += len(line) - at + 1
                beyond = length > LONGEST_CELL or len(self._taken) > MOST_LINES
                following = None if beyond else next(self._rest, None)
                if following is None:
                    raise self._open(beyond, column)
                self._taken.append((following, self._lines.ending))
                if not isinstance(following, str):
                    following.line = self._lines.number
                    raise following
                line, at = following, 0

    def _open(self, beyond: bool, column: int) -> BadRowError:
        never = "the quote that opens here is never closed"
        if beyond:
            never = (
                f"the quote that opens here is not closed within {LONGEST_CELL:,} characters and "
                f"{MOST_LINES:,} lines"
            )
        return BadRowError(
            never,
            'close it, or write it twice ("") if it is text',
            column=column,
            line=self._first,
            swallows=beyond,
        )

    def _after_quote(self, character: str, column: int) -> BadRowError:
        where = f" on line {self._lines.number}" if self._lines.number > self._first else ""
        return BadRowError(
            f"{character!r} stands after the quote that closes the cell{where}",
            "close the quote where the cell ends; a quote inside a quoted cell is written "
            'twice: ""',
            column=column,
        )

    def _return_whole_records(self) -> None:
        """After a fault, lines that are whole records by themselves are not part of it.

        An open quote swallows the rows up to the next quote; a broken cell of several lines is
        not to be taken for rows. What nearly all lines in between are decides.
        """
        following = self._taken[1:]
        between = following[:-1] or following
        alone = sum(self._stands_alone(line) for line, _ in between)
        if following and alone >= NEARLY_ALL * len(between):
            self._lines.put_back(following)
            del self._taken[1:]

    def _stands_alone(self, line: Line) -> bool:
        if not isinstance(line, str):
            return False
        width = self._width or 2
        if '"' not in line:
            return line.count(self._delimiter) + 1 == width
        cells = _cells_of_line(line, self._delimiter)
        return cells is not None and len(cells) == width

    def _raw(self) -> str:
        taken = [(line if isinstance(line, str) else line.raw, end) for line, end in self._taken]
        return "".join(line + end for line, end in taken[:-1]) + taken[-1][0]
