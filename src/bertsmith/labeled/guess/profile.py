"""What the cells of a column look like: numbers, categories, texts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

SHORT = 40  # characters that a label hardly exceeds
FEW_WORDS = 4


@dataclass(frozen=True, slots=True)
class Profile:
    """Counts over the cells of one column."""

    cells: tuple[str, ...]
    distinct: int
    filled: int
    length: float  # characters in a filled cell, the mean
    longest: int
    words: int  # the most in a cell
    numeric: bool  # every filled cell is a number
    whole: bool  # and all of them are whole

    @property
    def category(self) -> bool:
        """Whether values repeat as those of labels do."""
        if not self.filled or self.longest > 3 * SHORT:
            return False
        return self.distinct <= max(2, 0.6 * self.filled) and self.distinct < self.filled

    @property
    def short(self) -> bool:
        """Whether all cells are as short as a label."""
        return bool(self.filled) and self.longest <= SHORT and self.words <= FEW_WORDS

    @property
    def score(self) -> bool:
        """Whether the cells are measured rather than counted: 3.8, 4.25."""
        return self.numeric and not self.whole and self.filled > 0

    @property
    def binary(self) -> bool:
        """Whether only 0 and 1 occur."""
        return self.filled > 0 and set(self.cells) <= {"0", "1", "0.0", "1.0"}

    @property
    def number_or_id(self) -> bool:
        """Whether the cells are numbers, or single words of a code: no texts."""
        coded = self.words == 1 and self.longest <= SHORT and all(c.isascii() for c in self.cells)
        return self.filled > 0 and (self.numeric or coded)


def profile(cells: Sequence[str]) -> Profile:
    """Count over some cells."""
    filled = [cell for cell in cells if cell.strip()]
    numbers = [_number(cell) for cell in filled]
    numeric = bool(filled) and all(math.isfinite(number) for number in numbers)
    return Profile(
        cells=tuple(cells),
        distinct=len(set(filled)),
        filled=len(filled),
        length=sum(map(len, filled)) / max(1, len(filled)),
        longest=max(map(len, filled), default=0),
        words=max((len(cell.split()) for cell in filled), default=0),
        numeric=numeric,
        whole=numeric and all(number.is_integer() for number in numbers),
    )


def _number(cell: str) -> float:
    try:
        return float(cell) if "_" not in cell else math.nan
    except ValueError:
        return math.nan
