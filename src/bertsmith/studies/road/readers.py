"""Vectors of words, with their sentences around them or without."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from bertsmith.classic.elmo.reader import ElmoReader
from bertsmith.classic.word_vectors.word_vectors import WordVectors
from bertsmith.models.build import Model
from bertsmith.nn.inputs import Inputs
from bertsmith.nn.modes import evaluating
from bertsmith.nn.packing import in_passes
from bertsmith.text.tokenizer import Tokenizer

Floats = NDArray[np.float32]
PASS_TOKENS = 4_096
TOGETHER = 256  # sentences whose vectors are in memory at once


class ContextReader(Protocol):
    """Vectors of words in their sentences."""

    def read(self, sentences: Sequence[Sequence[str]]) -> list[Floats]:
        """(n, D) for each sentence of n words."""


class InputReader(Protocol):
    """Vectors of words alone."""

    @property
    def width(self) -> int:
        """D, the numbers per vector."""

    def vector(self, word: str) -> Floats | None:
        """(D,), or None for a word that is not known."""


class WordPieces:
    """The pieces of words, each word split once."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self._known: dict[str, list[int]] = {}

    def of(self, word: str) -> list[int]:
        """The ids of a word; a word without any piece is an unknown one."""
        if word not in self._known:
            found = self.tokenizer.encode(word)
            ids = found.ids[found.fields >= 0].tolist()
            self._known[word] = ids or [self.tokenizer.special.unk or 0]
        return self._known[word]


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceReader:
    """The last layer of an encoder; a word is the mean of its pieces.

    A sentence longer than `window` tokens is read in parts, which do not see each other.
    """

    model: Model
    pieces: WordPieces
    window: int

    @torch.inference_mode()
    def read(self, sentences: Sequence[Sequence[str]]) -> list[Floats]:
        """(n, D) for each sentence of n words."""
        parts = [part for n, one in enumerate(sentences) for part in self._parts(n, one)]
        width = self.model.spec.hidden
        found = [np.zeros((len(one), width), dtype=np.float32) for one in sentences]
        tokenizer = self.pieces.tokenizer
        framed = [tokenizer.framed(part.ids) for part in parts]
        lead = int(len(tokenizer.framed(())) > 0)

        def run(numbers: Sequence[int]) -> list[Floats]:
            lengths = [len(framed[n]) for n in numbers]
            inputs = Inputs.of(np.concatenate([framed[n] for n in numbers]), lengths)
            rows = self.model(inputs).hidden.float().numpy()
            return np.split(rows, np.cumsum(lengths)[:-1])

        with evaluating(self.model):
            read = in_passes([len(ids) for ids in framed], PASS_TOKENS, run)
        for part, rows in zip(parts, read, strict=True):
            bounds = np.cumsum([0, *part.sizes])
            sums = np.add.reduceat(rows[lead : lead + bounds[-1]], bounds[:-1], axis=0)
            means = sums / np.array(part.sizes, dtype=np.float32)[:, None]
            found[part.sentence][part.first : part.first + len(part.sizes)] = means
        return found

    def _parts(self, number: int, sentence: Sequence[str]) -> list[_Part]:
        room = self.window - len(self.pieces.tokenizer.framed(()))
        parts: list[_Part] = []
        for place, word in enumerate(sentence):
            ids = self.pieces.of(word)[:room]
            if not parts or len(parts[-1].ids) + len(ids) > room:
                parts.append(_Part(sentence=number, first=place))
            parts[-1].ids.extend(ids)
            parts[-1].sizes.append(len(ids))
        return parts


@dataclass(slots=True)
class _Part:
    """Words of a sentence that are read together, from the word number `first` on."""

    sentence: int
    first: int
    ids: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ElmoContexts:
    """The mean of ELMo's layers."""

    reader: ElmoReader

    def read(self, sentences: Sequence[Sequence[str]]) -> list[Floats]:
        """(n, D) for each sentence of n words."""
        return [layers.mean(axis=0) for layers in self.reader.read(sentences)]


@dataclass(frozen=True, slots=True)
class ElmoInputs:
    """ELMo's vector of a word alone: from its characters."""

    reader: ElmoReader

    @property
    def width(self) -> int:
        """D, both directions."""
        return self.reader.width

    def vector(self, word: str) -> Floats | None:
        """(D,) of any word."""
        found: Floats = self.reader.read([[word]])[0][0, 0]
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceRows:
    """Input rows of pieces by id; a word is the mean of its pieces."""

    pieces: WordPieces
    rows: Mapping[int, Floats]
    width: int

    def vector(self, word: str) -> Floats | None:
        """(D,), or None if no piece has a row."""
        found = [self.rows[number] for number in self.pieces.of(word) if number in self.rows]
        return np.mean(found, axis=0) if found else None


@dataclass(frozen=True, slots=True)
class WordTable:
    """One vector per word."""

    vectors: WordVectors

    @property
    def width(self) -> int:
        """D, the numbers per vector."""
        return self.vectors.dimension

    def vector(self, word: str) -> Floats | None:
        """(D,), or None for a word that is not known."""
        number = self.vectors.index.get(word)
        return None if number is None else self.vectors.matrix[number]


@dataclass(slots=True)
class StaticContexts:
    """Vectors of words alone in the place of vectors in context; unknown words have zeros."""

    inputs: InputReader
    width: int
    known: dict[str, Floats] = field(default_factory=dict)

    def read(self, sentences: Sequence[Sequence[str]]) -> list[Floats]:
        """(n, D) for each sentence of n words."""
        return [np.stack([self._of(word) for word in one]) for one in sentences]

    def _of(self, word: str) -> Floats:
        if word not in self.known:
            found = self.inputs.vector(word)
            self.known[word] = np.zeros(self.width, np.float32) if found is None else found
        return self.known[word]
