"""Which words each step of a neural language model reads, and their loss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bertsmith.classic.neural.network import NeuralNetwork
from bertsmith.classic.neural.reading import Lanes, NeuralBatch, WordLines, text_batches
from bertsmith.classic.neural.settings import NeuralSettings, noise_chances
from bertsmith.classic.neural.softmax import NoiseWords, SoftmaxSettings
from bertsmith.random_keys import key_of, uniforms
from bertsmith.training.loop.epochs import Epochs
from bertsmith.training.loop.workload import Losses, Workload

PART = "words"
PASS_WORDS = 8_192  # predictions of a pass: activations of a few hundred MB at most


class NeuralWorkload(Workload):
    """The work of the training loop: lines in random order, or lanes of text.

    Where states are reset at line ends, step s reads lines s x n to (s + 1) x n of an endless row
    of epochs. Else it reads window s of the lanes, and the model carries the states between steps.
    """

    def __init__(
        self,
        settings: NeuralSettings,
        train: WordLines,
        held_out: WordLines,
        noise: NoiseTable | None,
    ) -> None:
        plan = settings.plan
        self._settings = settings
        self._train, self._held_out = train, held_out
        self._noise = noise
        self._epochs = Epochs(len(train), settings.seed)
        self._lanes: Lanes | None = None
        if settings.reset != "line":
            self._lanes = Lanes(
                train, settings.reset, lanes=plan.lanes, window=plan.window, seed=settings.seed
            )

    @property
    def steps_of_epoch(self) -> float:
        """How many steps read every line once."""
        if self._lanes is not None:
            return float(self._lanes.steps)
        return len(self._train) / self._settings.plan.lines

    @property
    def weights(self) -> Mapping[str, float]:
        """One part."""
        return {PART: 1.0}

    def micro_batches(self, step: int, share: float) -> list[NeuralBatch]:
        """The batches of a step: windows of its lines, or the one window of the lanes."""
        noise = None if self._noise is None else self._noise.draw(step)
        if self._lanes is not None:
            return [self._lanes.batch(step, noise)]
        texts = [self._train.tokens(line, line + 1) for line in self._numbers(step)]
        window = self._settings.plan.window
        return list(text_batches(texts, window=window, most=PASS_WORDS, noise=noise))

    def counts(self, batch: NeuralBatch) -> dict[str, int]:
        """Predictions, line ends included."""
        return {PART: batch.predictions}

    def loss(self, model: nn.Module, batch: NeuralBatch) -> Losses:
        """The loss of the softmax in training, the exact one otherwise."""
        if not isinstance(model, NeuralNetwork):
            raise TypeError(f"neural language models train a NeuralNetwork, not {type(model)}")
        return {PART: model(batch)}, {}

    def tokens(self, batch: NeuralBatch) -> int:
        """The predictions of a batch."""
        return batch.predictions

    def examples(self, step: int) -> str:
        """Which lines a step reads, in words."""
        if self._lanes is not None:
            epoch, window = divmod(step, self._lanes.steps)
            return f"window {window} of {self._lanes.steps} of the lanes of epoch {epoch}"
        numbers = self._numbers(step)
        return f"lines {numbers[:8]}{' ...' if len(numbers) > 8 else ''}, counted from 0"

    def held_out(self) -> Iterator[NeuralBatch]:
        """The held-out lines."""
        yield from held_out_batches(self._held_out, self._settings)

    def _numbers(self, step: int) -> list[int]:
        many = self._settings.plan.lines
        return [self._epochs.row(reading) for reading in range(step * many, (step + 1) * many)]


def held_out_batches(lines: WordLines, settings: NeuralSettings) -> Iterator[NeuralBatch]:
    """Batches of all lines, with states reset as in training."""
    bounds = lines.bounds(settings.reset).tolist()
    texts = [lines.tokens(first, end) for first, end in pairwise(bounds)]
    yield from text_batches(texts, window=settings.plan.window, most=PASS_WORDS)


class NoiseTable:
    """Noise words by their chances; those of a step are a function of seed and step."""

    def __init__(self, chances: NDArray[np.float64], *, samples: int, seed: int) -> None:
        self._edges = np.cumsum(chances, dtype=np.float64)
        self._samples = samples
        self._seed = seed

    def draw(self, step: int) -> Tensor:
        """The noise words of a step: (S,)."""
        key = key_of("noise", step, seed=self._seed)
        places = uniforms(key, np.arange(self._samples)) * self._edges[-1]
        found = np.searchsorted(self._edges, places, side="right")
        return torch.from_numpy(np.minimum(found, len(self._edges) - 1).astype(np.int64))


def noise_table(
    softmax: SoftmaxSettings, counts: NDArray[np.integer], *, seed: int
) -> NoiseTable | None:
    """The noise of a softmax that needs some; `counts` (V,) with line ends first."""
    if not isinstance(softmax, NoiseWords):
        return None
    return NoiseTable(noise_chances(counts, softmax), samples=softmax.samples, seed=seed)
