"""A row that cannot be used: where it stands, what is wrong with it, what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bertsmith.files.faults import BadRowError, shown
from bertsmith.files.lines import Lines

LONGEST_ROW = 1 << 25  # bytes; a text beyond it is no example but a library


@dataclass(frozen=True, slots=True, kw_only=True)
class Reject:
    """One row that was not accepted; `raw` is what the file holds, so that it can be repaired."""

    source: str
    line: int
    column: int | str | None
    reason: str
    advice: str
    raw: str
    part: str = "column"  # what a place within a row is called in this format
    id: str | None = None
    """The row's own id, for files whose rows are not lines."""

    def __str__(self) -> str:
        column = "" if self.column is None else f", {self.part} {self.column}"
        name = "" if self.id is None else f", id {shown(self.id)}"
        return f"{self.source}, line {self.line}{name}{column}: {self.reason}; {self.advice}"


def reject_of(
    fault: BadRowError,
    source: str,
    line: int,
    raw: str,
    *,
    part: str = "column",
    id: str | None = None,
) -> Reject:
    """The row that a fault makes unusable."""
    return Reject(
        source=source,
        line=fault.line or line,
        column=fault.column,
        reason=fault.reason,
        advice=fault.advice,
        raw=raw,
        part="column" if isinstance(fault.column, int) else part,
        id=id,
    )


def row_lines(path: Path, encoding: str | None) -> Lines:
    """The lines of a file of labeled rows; a longer one than `LONGEST_ROW` is rejected."""
    return Lines(path, encoding or "utf-8", longest=LONGEST_ROW)


def lighter(reject: Reject) -> Reject:
    """The reject for a list in memory: what it says, without what the file held."""
    return replace(reject, raw="")


def check_texts(texts: Sequence[str], columns: Sequence[int | str], *, keep_empty: bool) -> None:
    """Refuse texts with NUL, and empty ones: any of one or two, all of several fields."""
    for text, column in zip(texts, columns, strict=True):
        if "\0" in text:
            raise BadRowError(
                "the text holds a NUL character: the file is damaged, or in another encoding",
                "remove it, or set --encoding",
                column=column,
            )
    empty = [i for i, text in enumerate(texts) if not text or text.isspace()]
    if keep_empty or not empty or (len(texts) > 2 and len(empty) < len(texts)):
        return
    what = "is empty" if not texts[empty[0]] else "is white space only"
    raise BadRowError(
        f"the text {what}",
        "fill it in, remove the row, or set --empty keep",
        column=columns[empty[0]],
    )
