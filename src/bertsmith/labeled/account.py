"""Counts of a reader: every row, and everything that was repaired."""

from __future__ import annotations

from dataclasses import dataclass, field

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
            ("nested", "span", "left out, being inside a longer one"),
        )
        return [
            f"{_count(getattr(self, kind), noun)} {rest}{self._where(kind)}"
            for kind, noun, rest in sentences
            if getattr(self, kind)
        ]

    def _where(self, kind: str) -> str:
        places = self.places.get(kind, [])
        more = ", ..." if getattr(self, kind) > len(places) else ""
        return f" ({', '.join(places)}{more})" if places else ""


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
