"""Similarity and analogies on the words that all models know."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bertsmith.classic.word_vectors.evaluation import (
    AnalogySection,
    RatedPairs,
    evaluate_analogies,
    evaluate_similarity,
    read_analogies,
    read_similarity,
    total_analogies,
)
from bertsmith.classic.word_vectors.word_vectors import WordVectors

Cell = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class WordTests:
    """Rated pairs and analogies of files."""

    similarity: tuple[RatedPairs, ...]
    analogies: tuple[AnalogySection, ...]

    @classmethod
    def read(cls, similarity: Sequence[Path], analogies: Sequence[Path]) -> WordTests:
        """The files as published."""
        return cls(
            similarity=tuple(read_similarity(path) for path in similarity),
            analogies=tuple(one for path in analogies for one in read_analogies(path)),
        )

    def words(self) -> frozenset[str]:
        """All words, in lower case, too."""
        rated = {word for one in self.similarity for pair in one.pairs for word in pair}
        asked = {word for one in self.analogies for row in one.questions for word in row}
        return frozenset(form for word in rated | asked for form in (word, word.lower()))

    def compare(
        self, sets: Mapping[str, Mapping[str, WordVectors]]
    ) -> tuple[dict[str, dict[str, Cell]], list[str]]:
        """Cells by model, and what they cover; `sets` are vectors by model and way."""
        every = [one for some in sets.values() for one in some.values()]
        known = set(every[0].words).intersection(*(one.words for one in every)) if every else set()
        words = tuple(sorted(known))
        cells: dict[str, dict[str, Cell]] = {name: {} for name in sets}
        for name, some in sets.items():
            for way, vectors in some.items():
                cells[name][f"similarity_{way}"] = self._similarity(vectors, words)
                cells[name][f"analogies_{way}"] = self._analogies(vectors, words)
        return cells, self._coverage(words, cells)

    def _similarity(self, vectors: WordVectors, words: tuple[str, ...]) -> Cell:
        if not self.similarity:
            return {"reason": "no --word-pairs were given"}
        found = [evaluate_similarity(_among(vectors, words), one) for one in self.similarity]
        values = [one.spearman for one in found if not math.isnan(one.spearman)]
        if not values:
            return {"reason": f"too few pairs among the {len(words)} words that all models know"}
        return {
            "value": float(np.mean(values)),
            "known": sum(one.known for one in found),
            "pairs": sum(one.pairs for one in found),
            "files": {one.name: one.spearman for one in found},
        }

    def _analogies(self, vectors: WordVectors, words: tuple[str, ...]) -> Cell:
        if not self.analogies:
            return {"reason": "no --analogies were given"}
        found = total_analogies(evaluate_analogies(_among(vectors, words), self.analogies))
        if not found.known:
            return {"reason": f"no analogy among the {len(words)} words that all models know"}
        return {"value": found.accuracy, "known": found.known, "questions": found.questions}

    def _coverage(
        self, words: tuple[str, ...], cells: Mapping[str, Mapping[str, Cell]]
    ) -> list[str]:
        if not (self.similarity or self.analogies):
            return []
        facts = [f"{len(words):,} words of the word tests are known to all models"]
        filled = [cell for some in cells.values() for cell in some.values() if "value" in cell]
        pairs = next(((c["known"], c["pairs"]) for c in filled if "pairs" in c), None)
        asked = next(((c["known"], c["questions"]) for c in filled if "questions" in c), None)
        if pairs:
            facts.append(f"{pairs[0]:,} of {pairs[1]:,} rated pairs count")
        if asked:
            facts.append(f"{asked[0]:,} of {asked[1]:,} analogies count")
        return ["; ".join(facts) + "."]


def _among(vectors: WordVectors, words: tuple[str, ...]) -> WordVectors:
    rows = [vectors.index[word] for word in words]
    matrix = vectors.matrix[rows] if rows else np.zeros((0, vectors.dimension), dtype=np.float32)
    return WordVectors(words, matrix)
