"""The workload of writing: batches of sources and targets, and the loss of target tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from torch import nn

from bertsmith.errors import ConfigError
from bertsmith.models.build import Model
from bertsmith.nn.packing import pack
from bertsmith.objectives.masked_lm import token_loss
from bertsmith.random_keys import key_of, mixed_with
from bertsmith.tasks.write.arrange import Arrangement, WritingBatch
from bertsmith.tasks.write.encoding import EncodedPairs
from bertsmith.training.execution.ranks import Ranks
from bertsmith.training.loop.epochs import EpochRows
from bertsmith.training.loop.workload import Losses, Workload
from bertsmith.training.recipe import RowPlan

Numbers = NDArray[np.int64]
PART = "writing"


class WritingWorkload(Workload):
    """Micro-batches of pairs, and their loss over the vocabulary.

    Step s reads rows s x batch to (s + 1) x batch of an endless row of epochs; the same on any
    number of ranks. What is hidden of a target depends on the seed and the number of the reading.
    """

    def __init__(
        self,
        arrangement: Arrangement,
        train: EncodedPairs,
        dev: EncodedPairs,
        *,
        plan: RowPlan,
        smoothing: float,
        seed: int,
        ranks: Ranks,
    ) -> None:
        if not len(train):
            raise ConfigError("there is no row to train on")
        self._arrangement = arrangement
        self._train, self._dev = train, dev
        self._micro_tokens = plan.micro_tokens
        self._smoothing = smoothing
        self._key = key_of("hidden", seed=seed) & (2**63 - 1)
        self._ranks = ranks
        self._rows = EpochRows(len(train), batch=plan.batch, seed=seed, ranks=ranks)

    @property
    def weights(self) -> Mapping[str, float]:
        """One part."""
        return {PART: 1.0}

    def micro_batches(self, step: int, share: float) -> list[WritingBatch]:
        """This rank's micro-batches of a step."""
        readings = self._rows.own(step)
        rows = self._rows.of(readings)
        keys = mixed_with(self._key, readings)
        return [
            replace(
                self._arrangement.training(*some_pairs(self._train, rows[part]), keys[part]),
                smoothing=self._smoothing,
            )
            for part in pack(pair_sizes(self._train, rows), self._micro_tokens)
        ]

    def counts(self, batch: WritingBatch) -> dict[str, int]:
        """Predicted tokens."""
        return {PART: len(batch.of)}

    def loss(self, model: nn.Module, batch: WritingBatch) -> Losses:
        """The loss of the predicted tokens, and how many were right."""
        module = writing_model(model)
        hidden, _ = batch.hidden(module)
        loss, score = token_loss(module, hidden, batch.of, smoothing=batch.smoothing)
        return {PART: loss}, {PART: score}

    def tokens(self, batch: WritingBatch) -> int:
        """The tokens of a micro-batch."""
        return batch.tokens

    def examples(self, step: int) -> str:
        """Which rows a step reads, in words."""
        return self._rows.words(step)

    def held_out(self) -> Iterator[WritingBatch]:
        """This rank's share of the dev rows, as they are written from left to right."""
        rows = np.arange(len(self._dev))[self._ranks.rank :: self._ranks.world]
        yield from exact_batches(self._arrangement, self._dev, rows, self._micro_tokens)


def exact_batches(
    arrangement: Arrangement, pairs: EncodedPairs, rows: Numbers, micro_tokens: int
) -> Iterator[WritingBatch]:
    """Some rows in batches whose loss is that of writing from left to right."""
    for part in pack(pair_sizes(pairs, rows), micro_tokens):
        yield arrangement.exact(*some_pairs(pairs, rows[part]))


def pair_sizes(pairs: EncodedPairs, rows: Numbers) -> list[int]:
    """The tokens of source and target of each row."""
    return [len(pairs.sources[row]) + len(pairs.targets[row]) for row in rows.tolist()]


def some_pairs(
    pairs: EncodedPairs, rows: Sequence[int] | Numbers
) -> tuple[list[NDArray[np.int32]], list[NDArray[np.int32]]]:
    """The sources and the targets of some rows."""
    numbers = np.asarray(rows).tolist()
    return [pairs.sources[n] for n in numbers], [pairs.targets[n] for n in numbers]


def writing_model(model: nn.Module) -> Model:
    """The model that a loop was given."""
    if not isinstance(model, Model):
        raise TypeError(f"training to write trains a Model, not {type(model)}")
    return model
