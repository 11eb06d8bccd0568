"""A trained ELMo model: its words, exact log probabilities of both directions, vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from bertsmith.classic.elmo.language_model import BidirectionalLm
from bertsmith.classic.elmo.reader import ElmoReader
from bertsmith.classic.elmo.settings import ElmoSettings
from bertsmith.classic.elmo.workload import CharacterLines
from bertsmith.classic.stream.splitting import SplitRule
from bertsmith.errors import ConfigError

Floats = NDArray[np.float64]
Ids = NDArray[np.integer]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ElmoModel:
    """Two language models with their words and settings; each line is scored by itself."""

    settings: ElmoSettings
    words: tuple[str, ...]
    module: BidirectionalLm
    rule: SplitRule | None = None  # how text becomes words

    @property
    def kind(self) -> str:
        """The name of this kind of model."""
        return self.settings.kind

    def reader(self) -> ElmoReader:
        """What gives contextual vectors of words."""
        return ElmoReader(self.module.network)

    def log_probabilities(self, lines: Sequence[Ids]) -> list[Floats]:
        """Natural logs for each line, forward: one per word, then that of the line's end."""
        return self.both_log_probabilities(lines)[0]

    def backward_log_probabilities(self, lines: Sequence[Ids]) -> list[Floats]:
        """Natural logs for each line, backward: one per word, then that of the line's beginning."""
        return self.both_log_probabilities(lines)[1]

    @torch.no_grad()
    def both_log_probabilities(self, lines: Sequence[Ids]) -> tuple[list[Floats], list[Floats]]:
        """Forward and backward, from one pass."""
        self.module.eval()
        given = [self._checked(line) for line in lines]
        forward = [np.empty(len(line) + 1) for line in given]
        backward = [np.empty(len(line) + 1) for line in given]
        for numbers, batch in self._characters().batches(given):
            both = self.module.predictions(batch.rows, batch.places, batch.lengths, batch.classes)
            scores = [self.module.softmax.scores(rows, targets) for rows, targets in both]
            live = _live(batch.lengths)
            for column, number in enumerate(numbers):
                own = live == column
                forward[number][:] = scores[0][own].double()
                # Backward, places 1 to n + 1 predict the beginning and then words 1 to n.
                backward[number][:] = np.roll(scores[1][own].double().numpy(), -1)
        return forward, backward

    @torch.no_grad()
    def next_log_probabilities(self, contexts: Sequence[Ids]) -> Floats:
        """Natural logs of every next word and, last, of the line's end: (B, V + 1), forward."""
        self.module.eval()
        given = [self._checked(context) for context in contexts]
        found = np.empty((len(given), len(self.words) + 1))
        for numbers, batch in self._characters().batches(given):
            _, layers, _ = self.module.network(batch.rows, batch.places, batch.lengths)
            for column, number in enumerate(numbers):
                row = layers[0][-1][len(given[number]), column]  # the end is not read yet
                chances = self.module.softmax.log_probabilities(row[None])[0]
                found[number] = chances.roll(-1).double()
        return found

    def _characters(self) -> CharacterLines:
        return CharacterLines(self.words, self.settings.model.length)

    def _checked(self, ids: Ids) -> Ids:
        given = np.asarray(ids, dtype=np.int64)
        if given.size and not (given.min() >= 0 and given.max() < len(self.words)):
            raise ConfigError(
                f"ids {given.min()} to {given.max()} are not all words of this model, which has "
                f"{len(self.words):,}; encode the text with its own words"
            )
        return given


def _live(lengths: Sequence[int]) -> NDArray[np.int64]:
    """The column of each prediction of a batch, in their order: (N,)."""
    sizes = np.array(lengths)
    _, columns = np.nonzero(np.arange(sizes[0] - 1)[:, None] < (sizes - 1)[None, :])
    return columns.astype(np.int64)
