"""A trained neural language model: exact log probabilities of lines and of the next word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray

from bertsmith.classic.neural.network import NeuralNetwork
from bertsmith.classic.neural.reading import LINE_END, Ids, NeuralBatch, WordLines, text_batches
from bertsmith.classic.neural.settings import NeuralSettings
from bertsmith.classic.neural.workload import PASS_WORDS
from bertsmith.classic.stream.splitting import SplitRule
from bertsmith.classic.word_vectors.word_vectors import WordVectors
from bertsmith.errors import ConfigError

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NeuralLm:
    """A network with its words and settings.

    Where states are not reset at line ends, the lines of a call are one text: each is scored after
    those before it.
    """

    settings: NeuralSettings
    words: tuple[str, ...]
    network: NeuralNetwork
    rule: SplitRule | None = None  # how text becomes words

    @property
    def kind(self) -> str:
        """The name of this kind of model."""
        return self.settings.kind

    @torch.no_grad()
    def log_probabilities(self, lines: Sequence[NDArray[np.integer]]) -> list[Floats]:
        """Natural logs for each line: one per word, then that of the line end."""
        given = WordLines.of_arrays([self._checked(line) for line in lines])
        bounds = given.bounds("line" if self.settings.reset == "line" else "none").tolist()
        texts = [given.tokens(first, end) for first, end in pairwise(bounds)]
        found = [np.empty(len(text), dtype=np.float64) for text in texts]
        for batch in self._batches(texts):
            rows = self.network.rows(batch)
            scores = self.network.softmax.scores(rows, batch.targets[batch.real])
            for column, text, places in _places(batch):
                found[text][batch.start : batch.start + len(column)] = scores[places].double()
        ends = np.cumsum([len(line) + 1 for line in lines])[:-1]
        return list(np.split(np.concatenate(found), ends)) if lines else []

    @torch.no_grad()
    def next_log_probabilities(self, contexts: Sequence[NDArray[np.integer]]) -> Floats:
        """Natural logs of every next word and, last, of the line end: (B, V + 1).

        A context are the words since the beginning of a line, of any number.
        """
        texts = [
            np.append(self._checked(context) + 1, LINE_END).astype(np.int32) for context in contexts
        ]
        found = np.empty((len(texts), len(self.words) + 1), dtype=np.float64)
        for batch in self._batches(texts):
            rows = self.network.rows(batch)
            for column, text, places in _places(batch):
                if batch.start + len(column) == len(texts[text]):
                    chances = self.network.softmax.log_probabilities(rows[places[-1:]])[0]
                    found[text] = chances.roll(-1).double()  # line ends come last
        return found

    def word_vectors(self) -> WordVectors:
        """The words and their vectors: (V, E)."""
        weight = self.network.body.embedding.weight.detach().float().cpu()
        return WordVectors(self.words, weight[1:].numpy().copy())

    def _batches(self, texts: Sequence[Ids]) -> Iterator[NeuralBatch]:
        self.network.eval()
        yield from text_batches(texts, window=self.settings.plan.window, most=PASS_WORDS)

    def _checked(self, ids: NDArray[np.integer]) -> NDArray[np.integer]:
        given = np.asarray(ids)
        if given.size and not (given.min() >= 0 and given.max() < len(self.words)):
            raise ConfigError(
                f"ids {given.min()} to {given.max()} are not all words of this model, which has "
                f"{len(self.words):,}; encode the text with its own words"
            )
        return given.astype(np.int32)


def _places(batch: NeuralBatch) -> Iterator[tuple[NDArray[np.bool_], int, torch.Tensor]]:
    """Of each column: its real places, its text, and which rows are its own."""
    if batch.texts is None:
        raise TypeError("a batch of lanes has no texts")
    order = torch.full(batch.real.shape, -1)
    order[batch.real] = torch.arange(batch.predictions)
    for column, text in enumerate(batch.texts.tolist()):
        real = batch.real[:, column]
        yield real[real].numpy(), text, order[real, column]
