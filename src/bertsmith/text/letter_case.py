"""Whether words begin with a capital, which the tokens of a lower-cased vocabulary do not show."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

NO_CASE, LOWER, UPPER = 0, 1, 2  # digits, punctuation, ideographs; a small letter; a capital
MAX_CACHED = 200_000


def case_of(word: str) -> int:
    """The case of a word's first letter that has one: NO_CASE, LOWER or UPPER."""
    for letter in word:
        if letter.lower() != letter.upper():
            return UPPER if letter == letter.upper() or letter.istitle() else LOWER
    return NO_CASE


class CaseCache(dict[str, int]):
    """`case_of` of words that were met before."""

    def __missing__(self, word: str) -> int:
        if len(self) >= MAX_CACHED:
            self.clear()
        case = self[word] = case_of(word)
        return case

    def of_tokens(
        self, text: str, offsets: NDArray[np.integer], starts: NDArray[np.bool_]
    ) -> NDArray[np.uint8]:
        """(T,) the case of each word at its first token; `offsets` (T, 2) are characters."""
        cases = np.zeros(len(starts), dtype=np.uint8)
        first = np.flatnonzero(starts)
        last = np.append(first[1:], len(starts))[: len(first)] - 1
        spans = zip(offsets[first, 0].tolist(), offsets[last, 1].tolist(), strict=True)
        cases[first] = [self[text[begin:end]] for begin, end in spans]
        return cases
