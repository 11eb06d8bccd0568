"""A table of words and vectors: nearest words, analogies and similarities; files in and out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertsmith.errors import ConfigError, unknown
from bertsmith.files.word_vectors.reading import read_word_vectors
from bertsmith.files.word_vectors.rows import VectorForm
from bertsmith.files.word_vectors.writing import write_word_vectors

Matrix = NDArray[np.float32]
_NAMED = 20_000  # words that a mistyped one is compared with


class NearWord(NamedTuple):
    """A word and its cosine similarity, -1 to 1."""

    word: str
    similarity: float


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Words and their vectors: `words` by falling frequency as a rule, `matrix` (V, D) float32."""

    words: tuple[str, ...]
    matrix: Matrix

    def __post_init__(self) -> None:
        if self.matrix.dtype != np.float32 or self.matrix.ndim != 2 or not self.matrix.shape[1]:
            raise ConfigError(
                f"word vectors must be a float32 matrix (V, D), not {self.matrix.dtype} "
                f"{self.matrix.shape}"
            )
        if len(self.words) != len(self.matrix):
            raise ConfigError(f"{len(self.words):,} words and {len(self.matrix):,} vectors")
        if len(self.index) != len(self.words):
            raise ConfigError("a word stands there twice; every word may have one vector")

    @classmethod
    def read(
        cls, path: Path | str, *, form: VectorForm | None = None, most: int | None = None
    ) -> WordVectors:
        """The vectors of a file of any form, or of a folder of `bertsmith words train`."""
        words, matrix = read_word_vectors(Path(path), form=form, most=most)
        return cls(tuple(words), matrix)

    def write(self, path: Path | str, *, form: VectorForm | None = None) -> None:
        """Write a file: word2vec's binary form for .bin, its text form else, or as `form` says."""
        write_word_vectors(Path(path), self.words, self.matrix, form=form)

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self.index

    def __getitem__(self, word: str) -> Matrix:
        """The vector (D,) of a word; an unknown word is refused with the most similar name."""
        row: Matrix = self.matrix[self.number(word)]
        return row

    @property
    def dimension(self) -> int:
        """D, the numbers per vector."""
        return int(self.matrix.shape[1])

    @cached_property
    def index(self) -> dict[str, int]:
        """The row of each word."""
        return {word: number for number, word in enumerate(self.words)}

    @cached_property
    def unit(self) -> Matrix:
        """All vectors at length 1 (V, D); those of length 0 stay as they are."""
        lengths = np.linalg.norm(self.matrix, axis=1, keepdims=True)
        lengths[lengths == 0] = 1.0
        unit: Matrix = np.divide(self.matrix, lengths, dtype=np.float32)
        return unit

    def number(self, word: str) -> int:
        """The row of a word."""
        found = self.index.get(word)
        if found is None:
            raise unknown("word with a vector", word, self.words[:_NAMED])
        return found

    def similarity(self, first: str, second: str) -> float:
        """The cosine of two words."""
        return float(self.unit[self.number(first)] @ self.unit[self.number(second)])

    def near(self, target: str | ArrayLike, n: int = 10) -> list[NearWord]:
        """The n words nearest to a word, which is left out, or to a vector (D,), by cosine."""
        if isinstance(target, str):
            own = self.number(target)
            return self._nearest(self.unit[own], (own,), n)
        vector = np.asarray(target, dtype=np.float32)
        if vector.shape != (self.dimension,):
            raise ConfigError(f"a vector of {self.dimension} numbers is wanted, not {vector.shape}")
        return self._nearest(vector, (), n)

    def analogy(self, a: str, b: str, c: str, n: int = 10) -> list[NearWord]:
        """a is to b as c is to these (3CosAdd of unit vectors, b - a + c); inputs are left out."""
        numbers = [self.number(word) for word in (a, b, c)]
        first, second, third = self.unit[numbers]
        return self._nearest(second - first + third, numbers, n)

    def known(self, words: Sequence[str]) -> list[str]:
        """Those of the words that have a vector."""
        return [word for word in words if word in self.index]

    def _nearest(self, vector: Matrix, left_out: Sequence[int], n: int) -> list[NearWord]:
        if n < 1:
            raise ConfigError(f"n is {n}; ask for at least one word")
        length = float(np.linalg.norm(vector))
        if not length:
            raise ConfigError("a vector of zeros is near to nothing; give another word")
        scores = self.unit @ (vector / np.float32(length))  # (V,)
        scores[list(left_out)] = -np.inf
        count = min(n, len(self.words) - len(set(left_out)))
        best = np.argpartition(-scores, max(0, count - 1))[:count]
        best = best[np.lexsort((best, -scores[best]))]
        return [NearWord(self.words[at], float(scores[at])) for at in best.tolist()]
