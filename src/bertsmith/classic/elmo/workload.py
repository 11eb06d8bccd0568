"""Which lines each step of ELMo reads, and the losses of both directions."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bertsmith.classic.elmo.language_model import FORWARD_BACKWARD, BidirectionalLm
from bertsmith.classic.elmo.settings import ElmoSettings
from bertsmith.classic.neural.reading import WordLines
from bertsmith.classic.neural.workload import NoiseTable
from bertsmith.nn.packing import pack
from bertsmith.text.whole_words.characters import character_table, mark_rows
from bertsmith.training.loop.epochs import Epochs
from bertsmith.training.loop.workload import Losses, Workload

log = logging.getLogger(__name__)

PASS_WORDS = 4_096  # of one pass
UNKNOWN = ""  # what stands for a word that the vocabulary lacks: no text has an empty word


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ElmoBatch:
    """B lines side by side, longest first.

    `rows` (U, length) are the characters of distinct words, each once; `places` (L, B) the rows
    along each line, its two ends included, of `lengths`; `classes` (L, B) what is predicted there:
    0 for an end, w + 1 for word w. `noise` (S,) are classes drawn for the softmax.
    """

    rows: Tensor
    places: Tensor
    classes: Tensor
    lengths: tuple[int, ...]
    noise: Tensor | None = None

    @property
    def predictions(self) -> int:
        """Of each direction: the words and one end of each line."""
        return sum(self.lengths) - len(self.lengths)

    def to(self, device: torch.device | str) -> ElmoBatch:
        """The same batch on a device."""
        return replace(
            self,
            rows=self.rows.to(device),
            places=self.places.to(device),
            classes=self.classes.to(device),
            noise=None if self.noise is None else self.noise.to(device),
        )


class CharacterLines:
    """Lines of word ids as batches, with the characters of all words made once."""

    def __init__(self, words: Sequence[str], length: int) -> None:
        spelled = (UNKNOWN, *words[1:])
        # A byte and five marks fit 16 bits, so that a million words take 100 MB.
        self._table = character_table(spelled, length).astype(np.int16)
        self._marks = mark_rows(length)

    def batch(self, lines: Sequence[NDArray[np.integer]], noise: Tensor | None = None) -> ElmoBatch:
        """Lines of ids, longest first."""
        lengths = tuple(len(line) + 2 for line in lines)
        every, inverse = np.unique(np.concatenate(lines), return_inverse=True)
        rows = np.concatenate([self._marks, self._table[every].astype(np.int64)])
        places = np.zeros((lengths[0], len(lines)), dtype=np.int64)
        classes = np.zeros_like(places)
        start = 0
        for column, line in enumerate(lines):
            end = len(line) + 1
            places[1:end, column] = inverse[start : start + len(line)] + 2
            places[end, column] = 1
            classes[1:end, column] = np.asarray(line) + 1
            start += len(line)
        return ElmoBatch(
            rows=torch.from_numpy(rows),
            places=torch.from_numpy(places),
            classes=torch.from_numpy(classes),
            lengths=lengths,
            noise=noise,
        )

    def batches(
        self, lines: Sequence[NDArray[np.integer]], noise: Tensor | None = None
    ) -> Iterator[tuple[list[int], ElmoBatch]]:
        """Batches of about `PASS_WORDS` words, each with the numbers of its lines."""
        for numbers in pack([len(line) + 2 for line in lines], PASS_WORDS):
            yield numbers, self.batch([lines[number] for number in numbers], noise)


class ElmoWorkload(Workload):
    """The work of the training loop: step s reads lines s x n to (s + 1) x n of endless epochs."""

    def __init__(
        self,
        settings: ElmoSettings,
        words: Sequence[str],
        train: WordLines,
        held_out: WordLines,
        noise: NoiseTable | None,
    ) -> None:
        self._plan = settings.plan
        self._noise = noise
        self._train, self._held_out = train, held_out
        self._characters = CharacterLines(words, settings.model.length)
        self._epochs = Epochs(len(train), settings.seed)
        longer = int((np.diff(train.starts) > self._plan.window).sum())
        if longer:
            log.info("%d lines are longer than %d words: read in pieces", longer, self._plan.window)

    @property
    def steps_of_epoch(self) -> float:
        """How many steps read every line once."""
        return len(self._train) / self._plan.lines

    @property
    def weights(self) -> Mapping[str, float]:
        """Both directions count the same."""
        return dict.fromkeys(FORWARD_BACKWARD, 0.5)

    def micro_batches(self, step: int, share: float) -> list[ElmoBatch]:
        """The batches of a step."""
        noise = None if self._noise is None else self._noise.draw(step)
        lines = self._pieces(self._train, self._numbers(step))
        return [batch for _, batch in self._characters.batches(lines, noise)]

    def counts(self, batch: ElmoBatch) -> dict[str, int]:
        """Predictions of each direction, line ends included."""
        return dict.fromkeys(FORWARD_BACKWARD, batch.predictions)

    def loss(self, model: nn.Module, batch: ElmoBatch) -> Losses:
        """The loss of the softmax in training, the exact one otherwise."""
        if not isinstance(model, BidirectionalLm):
            raise TypeError(f"ELMo trains a BidirectionalLm, not {type(model)}")
        sums = model(batch.rows, batch.places, batch.lengths, batch.classes, batch.noise)
        return dict(zip(FORWARD_BACKWARD, sums, strict=True)), {}

    def tokens(self, batch: ElmoBatch) -> int:
        """The predictions of one direction."""
        return batch.predictions

    def examples(self, step: int) -> str:
        """Which lines a step reads, in words."""
        numbers = self._numbers(step)
        return f"lines {numbers[:8]}{' ...' if len(numbers) > 8 else ''}, counted from 0"

    def held_out(self) -> Iterator[ElmoBatch]:
        """The held-out lines."""
        lines = self._pieces(self._held_out, range(len(self._held_out)))
        for _, batch in self._characters.batches(lines):
            yield batch

    def _numbers(self, step: int) -> list[int]:
        many = self._plan.lines
        return [self._epochs.row(reading) for reading in range(step * many, (step + 1) * many)]

    def _pieces(self, lines: WordLines, numbers: Sequence[int]) -> list[NDArray[np.integer]]:
        window = self._plan.window
        pieces: list[NDArray[np.integer]] = []
        for number in numbers:
            first, end = int(lines.starts[number]), int(lines.starts[number + 1])
            pieces += [
                np.asarray(lines.ids[start : min(start + window, end)])
                for start in range(first, max(end, first + 1), window)
            ]
        return pieces
