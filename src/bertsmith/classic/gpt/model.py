"""A trained causal model as a language model of lines: exact log probabilities of its words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertsmith.classic.gpt.units import TokenUnits
from bertsmith.classic.stream.splitting import SplitRule
from bertsmith.errors import ConfigError
from bertsmith.models.build import Model
from bertsmith.nn.inputs import Inputs
from bertsmith.nn.layout import Causal
from bertsmith.nn.packing import pack

Floats = NDArray[np.float64]
Ids = NDArray[np.integer]
PASS_TOKENS = 4_096  # of one pass
PASS_LOGITS = 8 << 20  # held at once


@dataclass(frozen=True, slots=True)
class _LinePart:
    """Part of a line: its inputs from `first` to `end`, of which those from `read` on predict."""

    line: int
    first: int
    read: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GptLm:
    """A causal model with the words it predicts.

    Chances are those of its words and of the end of a line, and sum to 1: tokens of a tokenizer
    that are no words here have none. Of a line longer than `window` every word is predicted from
    at least half a window before it.
    """

    words: tuple[str, ...]
    units: TokenUnits
    model: Model
    window: int
    rule: SplitRule | None = None  # how text becomes words
    kind: str = "gpt"

    @torch.no_grad()
    def log_probabilities(self, lines: Sequence[Ids]) -> list[Floats]:
        """Natural logs for each line: one per word, then that of the line end."""
        tokens = [self.units.line(self._checked(line)) for line in lines]
        found = [np.empty(len(line) - 1, dtype=np.float64) for line in tokens]
        places = self._class_places()
        pieces = [piece for n, line in enumerate(tokens) for piece in self._pieces(n, len(line))]
        for some, rows in self._rows(tokens, pieces):
            targets = [tokens[piece.line][piece.read + 1 : piece.end + 1] for piece in some]
            wanted = torch.from_numpy(places[np.concatenate(targets)])
            scores = np.concatenate(
                [
                    chances.gather(1, wanted[start : start + len(chances), None])[:, 0].numpy()
                    for start, chances in self._chances(rows)
                ]
            )
            at = 0
            for piece in some:
                count = piece.end - piece.read
                found[piece.line][piece.read : piece.end] = scores[at : at + count]
                at += count
        return found

    @torch.no_grad()
    def next_log_probabilities(self, contexts: Sequence[Ids]) -> Floats:
        """Natural logs of every next word and, last, of the line end: (B, V + 1)."""
        tokens = [self.units.line(self._checked(context)) for context in contexts]
        pieces = [
            _LinePart(number, self._first(len(line) - 2), len(line) - 2, len(line) - 1)
            for number, line in enumerate(tokens)
        ]
        found = np.empty((len(tokens), len(self.words) + 1), dtype=np.float64)
        for some, rows in self._rows(tokens, pieces):
            for start, chances in self._chances(rows):
                numbers = [piece.line for piece in some[start : start + len(chances)]]
                found[numbers] = chances.numpy()
        return found

    def _first(self, place: int) -> int:
        """Where the piece begins that the prediction at a place is made from."""
        half = self.window // 2
        return 0 if place < self.window else ((place - self.window) // half + 1) * half

    def _pieces(self, number: int, size: int) -> Iterator[_LinePart]:
        """The pieces of a line of `size` tokens, which together predict each token once."""
        read = 0
        while read < size - 1:
            first = self._first(read)
            end = min(first + self.window, size - 1)
            yield _LinePart(number, first, read, end)
            read = end

    def _rows(
        self, tokens: Sequence[Ids], pieces: Sequence[_LinePart]
    ) -> Iterator[tuple[list[_LinePart], Tensor]]:
        """Pieces that are read together, and the hidden rows (P, D) of their predictions."""
        self.model.eval()
        for numbers in pack([piece.end - piece.first for piece in pieces], PASS_TOKENS):
            some = [pieces[number] for number in numbers]
            lengths = [piece.end - piece.first for piece in some]
            ids = np.concatenate([tokens[piece.line][piece.first : piece.end] for piece in some])
            inputs = Inputs.of(ids, lengths, sees=Causal())
            starts = np.cumsum(lengths) - lengths
            read = [
                np.arange(start + piece.read - piece.first, start + piece.end - piece.first)
                for start, piece in zip(starts, some, strict=True)
            ]
            hidden = self.model(inputs).hidden
            yield some, hidden[torch.from_numpy(np.concatenate(read))]

    def _chances(self, rows: Tensor) -> Iterator[tuple[int, Tensor]]:
        """Log probabilities (p, V + 1) of hidden rows, some at a time, with their first row."""
        kind = next(name for name in ("masked_lm", "language_model") if name in self.model.heads)
        classes = torch.from_numpy(self.units.classes.astype(np.int64))
        step = max(1, PASS_LOGITS // self.units.size)
        for start in range(0, len(rows), step):
            logits = self.model.logits(kind, rows[start : start + step])
            yield start, logits.index_select(1, classes).double().log_softmax(1)

    def _class_places(self) -> NDArray[np.int64]:
        """The number of each token among the classes; the unknown word may share its token."""
        places = np.zeros(self.units.size, dtype=np.int64)
        classes = self.units.classes
        places[classes[::-1]] = np.arange(len(classes))[::-1]
        places[self.units.end] = len(classes) - 1
        return places

    def _checked(self, ids: Ids) -> Ids:
        given = np.asarray(ids)
        if given.size and not (given.min() >= 0 and given.max() < len(self.words)):
            raise ConfigError(
                f"ids {given.min()} to {given.max()} are not all words of this model, which has "
                f"{len(self.words):,}; encode the text with its own words"
            )
        return given.astype(np.int32)
