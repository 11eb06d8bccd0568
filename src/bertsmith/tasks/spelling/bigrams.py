"""A baseline: a character is changed where a similar one makes its two bigrams far likelier."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from bertsmith.labeled.errors.confusions import Confusions
from bertsmith.tasks.spelling.edits import Edit

EDGE = "\n"


class BigramCorrector:
    """Bigrams of right texts, interpolated with single characters, and a list of confusions."""

    def __init__(self, texts: Sequence[str], confusions: Confusions, *, share: float = 0.9) -> None:
        self._confusions = confusions
        self._share = share
        self._ones: Counter[str] = Counter()
        self._twos: Counter[tuple[str, str]] = Counter()
        for text in texts:
            framed = [EDGE, *text, EDGE]
            self._ones.update(framed)
            self._twos.update(pairwise(framed))
        self._total = self._ones.total() + 1
        self._kinds = len(self._ones) + 1

    def proposals(self, texts: Sequence[str]) -> list[list[Edit]]:
        """Changes that make a text likelier; the score grows with the gain in nats, below 1."""
        return [self._edits(text) for text in texts]

    def _edits(self, text: str) -> list[Edit]:
        edits = []
        for place, wrong in enumerate(text):
            similar = self._confusions.get(wrong, "")
            if not similar:
                continue
            before = text[place - 1] if place else EDGE
            after = text[place + 1] if place + 1 < len(text) else EDGE
            now = self._score(before, wrong, after)
            gain, right = max((self._score(before, one, after) - now, one) for one in similar)
            if gain > 0:
                edits.append(
                    Edit(
                        start=place,
                        end=place + 1,
                        wrong=wrong,
                        right=right,
                        score=1.0 - math.exp(-gain),
                    )
                )
        return edits

    def _score(self, before: str, character: str, after: str) -> float:
        return math.log(self._chance(before, character)) + math.log(self._chance(character, after))

    def _chance(self, first: str, second: str) -> float:
        single = (self._ones[second] + 1) / (self._total + self._kinds)
        if not self._ones[first]:
            return single
        pair = self._twos[first, second] / self._ones[first]
        return self._share * pair + (1 - self._share) * single
