"""Rows that cannot be used, and the counts of a reading: rows, rejects, repairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from bertsmith.files.faults import BadRowError
from bertsmith.wording import counted, shown

NAMED = 3  # how many places of each kind of repair are recorded for the notes


@dataclass(slots=True)
class RowAccount:
    """Counts of one reading; `rows_in` is always `rows_ok` + `rows_rejected`."""

    rows_in: int = 0
    rows_ok: int = 0
    rows_rejected: int = 0
    unlabeled: int = 0
    blank: int = 0
    """Empty lines where no record stands."""
    repaired: int = 0
    """Answers and spans that stood elsewhere than the file says, or had spaces around them."""
    unplaced: int = 0
    """Accepted answers that their context does not contain."""
    nested: int = 0
    """Spans inside a longer one, which one tag per word cannot express."""
    empty: int = 0
    """Rows with an empty text that are written without a prediction."""
    raw: str = ""
    """The JSON object of the row read last, as the file has it."""
    places: dict[str, list[str]] = field(default_factory=dict)

    def note(self, kind: str, place: str) -> None:
        """Count a repair and keep the first few places."""
        setattr(self, kind, getattr(self, kind) + 1)
        places = self.places.setdefault(kind, [])
        if len(places) < NAMED and place not in places:
            places.append(place)

    def notes(self) -> list[str]:
        """What a user should know, in plain sentences."""
        sentences = (
            ("unlabeled", "row", "without a label"),
            ("blank", "blank line", "passed over"),
            ("repaired", "span", "moved to where the text stands"),
            ("unplaced", "answer", "used for scoring only, as no part of the context"),
            ("empty", "row", "without a prediction, as a text is empty"),
            ("nested", "span", "left out, being inside a longer one"),
        )
        return [
            f"{counted(getattr(self, kind), noun)} {rest}{self._where(kind)}"
            for kind, noun, rest in sentences
            if getattr(self, kind)
        ]

    def _where(self, kind: str) -> str:
        places = self.places.get(kind, [])
        more = ", ..." if getattr(self, kind) > len(places) else ""
        return f" ({', '.join(places)}{more})" if places else ""


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
    swallows: bool = False
    """Whether it may have taken in all that follows it, as an open quote does."""

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
        swallows=fault.swallows,
    )


def is_blank(texts: Sequence[str]) -> bool:
    """Whether a row has too little text to be read: none in any of one or two, or in all fields."""
    empty = [not text or text.isspace() for text in texts]
    return all(empty) if len(texts) > 2 else any(empty)


def check_texts(texts: Sequence[str], columns: Sequence[int | str], *, keep_empty: bool) -> None:
    """Refuse texts with NUL, and empty ones: any of one or two, all of several fields."""
    for text, column in zip(texts, columns, strict=True):
        if "\0" in text:
            raise BadRowError(
                "the text holds a NUL character: the file is damaged, or in another encoding",
                "remove it, or set --encoding",
                column=column,
            )
    if keep_empty or not is_blank(texts):
        return
    first = next(i for i, text in enumerate(texts) if not text or text.isspace())
    what = "is empty" if not texts[first] else "is white space only"
    raise BadRowError(
        f"the text {what}",
        "fill it in, remove the row, or set --empty keep",
        column=columns[first],
    )
