"""Permutation language model (XLNet, Yang et al. 2019, arXiv:1906.08237): any order of a text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from bertsmith.corpus.rows import Flags, Longs, RowsBatch, begins
from bertsmith.errors import ConfigError
from bertsmith.models.positions import SegmentRecurrent
from bertsmith.nn.inputs import Inputs
from bertsmith.nn.layout import Ordered
from bertsmith.nn.relative.encoder import RelativeEncoder
from bertsmith.objectives.batch import Targets, rows_inputs
from bertsmith.objectives.masked_lm import token_loss
from bertsmith.objectives.program import (
    Losses,
    ModelBuilder,
    PretrainModule,
    ProgramSettings,
    Scores,
)
from bertsmith.text.tokenizer import Tokenizer

PERMUTED = "permuted"
PLAIN = -1  # rank of tokens that all rows see


@dataclass(frozen=True, slots=True, kw_only=True)
class PermutedBatch:
    """Texts in an order, the rows that are predicted, and the stretch before each text, if any.

    `targets.at` (P,) are rows of `inputs`. `before` has as many texts as `inputs`.
    """

    inputs: Inputs
    targets: Targets
    before: Inputs | None = None

    @property
    def tokens(self) -> int:
        """Tokens that the model reads, those of the stretch before too."""
        return len(self.inputs.ids) + (0 if self.before is None else len(self.before.ids))

    @property
    def counts(self) -> dict[str, int]:
        """The number of predicted tokens."""
        return {PERMUTED: self.targets.count}

    def to(self, device: torch.device | str) -> PermutedBatch:
        """The same batch on a device."""
        before = None if self.before is None else self.before.to(device)
        return PermutedBatch(
            inputs=self.inputs.to(device), targets=self.targets.to(device), before=before
        )


class PermutationProgram:
    """Predicts spans of whole words in a random order, each token from those before it in it.

    Tokens that are not predicted are seen by all. Special tokens take part in the order and are
    never predicted. A prediction reads a query, which knows its place and not its token; only
    predicted places have one, and the last block computes nothing else.
    """

    weights: ClassVar[Mapping[str, float]] = {PERMUTED: 1.0}

    def __init__(self, settings: PermutationSettings) -> None:
        self.settings = settings
        shares = 1.0 / np.arange(1, settings.longest + 1)
        self._limits = np.cumsum(shares) / shares.sum()

    def build(self, builder: ModelBuilder) -> PretrainModule:
        """A model with two streams."""
        if not isinstance(builder.spec.positions, SegmentRecurrent) or builder.spec.sees != "all":
            raise ConfigError(
                "the permutation program needs a model with two streams that sees the whole text: "
                'set model.variant="xlnet" and leave model.sees alone'
            )
        return PretrainModule(self, builder.model([builder.vocabulary_head]))

    def prepare(self, rows: RowsBatch, share: float = 0.0) -> PermutedBatch:
        """The texts with an order each; the first `memory` tokens of a text are its memory."""
        before = None
        if self.settings.memory:
            past = np.where(rows.sizes > self.settings.memory, self.settings.memory, 0)
            early = rows.places < past[rows.texts]
            before, rows = _part(rows, early, past), _part(rows, ~early, rows.sizes - past)
        predicted = self.predicted(rows)
        ranks = self.ranks(rows, predicted)
        square = np.full((len(rows.lengths), max(rows.lengths, default=0)), PLAIN, dtype=np.int64)
        square[rows.texts, rows.places] = ranks
        at = np.flatnonzero(predicted)
        return PermutedBatch(
            inputs=rows_inputs(replace(rows, sees=Ordered(torch.from_numpy(square)))),
            targets=Targets(
                at=torch.from_numpy(at), of=torch.from_numpy(rows.ids[at].astype(np.int64))
            ),
            before=None if before is None else rows_inputs(before),
        )

    def losses(self, module: PretrainModule, batch: PermutedBatch) -> tuple[Losses, Scores]:
        """The loss of the predicted tokens."""
        hidden = queried(module, batch)
        loss, score = token_loss(module.model, hidden, batch.targets.of)
        return {PERMUTED: loss}, {PERMUTED: score}

    def order(self, rows: RowsBatch) -> Longs:
        """(T,) the place of each row in the order of its text, from 0.

        Blocks of `block` tokens stay one after another; each is permuted by itself.
        """
        block = rows.places // self.settings.block
        bits = rows.bits("order", np.arange(len(rows.ids)))
        by_rank = np.lexsort((bits, block, rows.texts))
        order = np.empty(len(rows.ids), dtype=np.int64)
        order[by_rank] = rows.places  # texts stay together, so their n-th place is rank n
        return order

    def ranks(self, rows: RowsBatch, predicted: Flags) -> Longs:
        """(T,) the order of predicted and special tokens, -1 for what all rows see."""
        return np.where(predicted | ~rows.real, self.order(rows), PLAIN)

    def predicted(self, rows: RowsBatch) -> Flags:
        """(T,) the tokens to predict: of every `context` * n words n in a row, n drawn by 1 / n."""
        chosen = np.zeros(len(rows.ids), dtype=bool)
        at = np.flatnonzero(begins(rows.words, rows))  # (W,) the first row of each word
        if not len(at):
            return chosen
        after = np.flatnonzero(np.append(begins(rows.words, rows) | ~rows.real, True))
        ends = after[np.searchsorted(after, at, side="right")]  # the row after each word
        length = np.searchsorted(self._limits, rows.uniforms("span length", at), side="right") + 1
        length = np.minimum(length, self.settings.longest)
        offset = rows.uniforms("span offset", at)
        limits = np.append(np.flatnonzero(np.append(True, np.diff(rows.texts[at]) > 0)), len(at))
        for first, last in zip(limits[:-1].tolist(), limits[1:].tolist(), strict=True):
            word = first
            while word < last:
                span = int(length[word])
                context = self.settings.context * span
                start = word + int(offset[word] * (context - span + 1))
                chosen_words = slice(min(start, last), min(start + span, last))
                for begin, end in zip(at[chosen_words], ends[chosen_words], strict=True):
                    chosen[begin:end] = True
                word += context
        return chosen


def queried(module: PretrainModule, batch: PermutedBatch) -> Tensor:
    """The rows (P, D) that predict; memory is computed anew, without a gradient."""
    encoder = module.model.encoder
    if not isinstance(encoder, RelativeEncoder):
        raise ConfigError("these texts were prepared for a model with two streams")
    memory = None if batch.before is None else encoder.memory(batch.before)
    hidden: Tensor = encoder(batch.inputs, queries=batch.targets.at, memory=memory).queried
    return hidden


def _part(rows: RowsBatch, kept: Flags, sizes: Longs) -> RowsBatch:
    """Some rows of each text as texts of their own, with the same keys."""
    return RowsBatch(
        ids=rows.ids[kept],
        segments=rows.segments[kept],
        words=rows.words[kept],
        lengths=tuple(sizes.tolist()),
        keys=rows.keys,
    )


class PermutationSettings(ProgramSettings):
    """Predict tokens in a random order of the text, with XLNet's two streams.

    Orders permute blocks of `block` tokens; spans of 1 to `longest` words are predicted, one in
    every `context` times as many words. The first `memory` tokens of each longer text are read
    first, without a gradient, and what follows them sees them as its memory.
    """

    kind: Literal["permutation"] = "permutation"
    block: Annotated[int, Field(ge=2)] = 256
    longest: Annotated[int, Field(ge=1)] = 5
    context: Annotated[int, Field(ge=2)] = 6
    memory: Annotated[int, Field(ge=0)] = 0

    def make(self, tokenizer: Tokenizer) -> PermutationProgram:
        """The program itself."""
        return PermutationProgram(self)
