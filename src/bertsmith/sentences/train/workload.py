"""The workload of sentence training: batches of rows of texts, and their losses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bertsmith.errors import ConfigError
from bertsmith.nn.inputs import SEGMENTS, Inputs
from bertsmith.nn.loss import LossSum
from bertsmith.nn.packing import pack
from bertsmith.sentences.train.model import SentenceModel
from bertsmith.text.encoding import Ints
from bertsmith.training.cached_gradients import RandomState, vector_gradients
from bertsmith.training.execution.ranks import Ranks
from bertsmith.training.loop.epochs import Epochs
from bertsmith.training.loop.workload import Losses, StepGradients, Workload

Numbers = NDArray[np.int64]
PART = "loss"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SentenceBatch:
    """This rank's texts of N rows of c columns, in `chunks` that pass the encoder one by one.

    `place` (n, c) is the vector of each text of its n rows, counted over the chunks. `targets` (N,)
    and `keys` (N, c), equal for equal texts, are of all rows of the loss, on every rank; the own
    ones begin at `start`.
    """

    chunks: tuple[Inputs, ...]
    place: Tensor
    targets: Tensor | None
    keys: Tensor
    start: int = 0

    @property
    def rows(self) -> int:
        """The rows of this rank."""
        return int(self.place.shape[0])

    @property
    def tokens(self) -> int:
        """The tokens of this rank."""
        return sum(int(chunk.ids.shape[0]) for chunk in self.chunks)

    def to(self, device: torch.device | str) -> SentenceBatch:
        """The same batch on a device."""
        return replace(
            self,
            chunks=tuple(chunk.to(device) for chunk in self.chunks),
            place=self.place.to(device),
            targets=None if self.targets is None else self.targets.to(device),
            keys=self.keys.to(device),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EncodedRows:
    """Rows of texts as token ids: `texts` are the distinct ones, `rows` (N, c) their numbers."""

    texts: Sequence[Ints]
    rows: Numbers
    targets: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        if not len(self.rows):
            raise ConfigError("there is no row to train on")


class SentenceWorkload(Workload):
    """Micro-batches of rows, and their loss.

    Step s reads rows s x batch to (s + 1) x batch of an endless row of epochs; the same on any
    number of ranks. Where the loss of a row depends on the others (`across`), a batch is one
    micro-batch, however large: more than `micro_tokens` tokens pass the encoder in several chunks,
    without gradients first and then once more with them.
    """

    def __init__(
        self,
        data: EncodedRows,
        *,
        across: bool,
        batch: int,
        micro_tokens: int,
        seed: int,
        ranks: Ranks,
    ) -> None:
        self._data = data
        self._lengths = np.array([len(ids) for ids in data.texts], dtype=np.int64)
        self._across = across
        self._batch = batch
        self._micro_tokens = micro_tokens
        self._ranks = ranks
        self._epochs = Epochs(len(data.rows), seed)

    @property
    def weights(self) -> Mapping[str, float]:
        """One part."""
        return {PART: 1.0}

    def micro_batches(self, step: int, share: float) -> list[SentenceBatch]:
        """This rank's micro-batches of a step; of a loss over the whole batch, always one."""
        every = self._numbers(step)
        mine = np.array_split(np.arange(len(every)), self._ranks.world)[self._ranks.rank]
        if self._across:
            start = int(mine[0]) if len(mine) else 0
            return [self._whole(every, every[mine], start)]
        own = every[mine]
        sizes = self._lengths[self._data.rows[own]].sum(axis=1)
        return [self._one_chunk(own[part]) for part in pack(sizes, self._micro_tokens)]

    def counts(self, batch: SentenceBatch) -> dict[str, int]:
        """Rows of this rank."""
        return {PART: batch.rows}

    def loss(self, model: nn.Module, batch: SentenceBatch) -> Losses:
        """The loss of all rows of a batch, encoded with gradients at once."""
        module = _sentence_model(model)
        vectors = torch.cat([module(chunk) for chunk in batch.chunks])
        columns = vectors[batch.place].unbind(dim=1)
        losses = module.objective(columns, batch.targets, batch.keys)
        return {PART: LossSum(losses.sum(), batch.rows)}, {}

    def backward(self, batches: Sequence[Any], step: StepGradients) -> None:
        """In the usual way, unless the batch is too large for one pass, or shared by ranks."""
        if not self._across or (self._ranks.world == 1 and len(batches[0].chunks) == 1):
            super().backward(batches, step)
            return
        (batch,) = batches
        cached_backward(_sentence_model(step.model), batch, step, ranks=self._ranks, part=PART)

    def tokens(self, batch: SentenceBatch) -> int:
        """The tokens of a micro-batch."""
        return batch.tokens

    def examples(self, step: int) -> str:
        """Which rows a step reads, in words."""
        numbers = self._numbers(step).tolist()
        more = " ..." if len(numbers) > 8 else ""
        return f"training rows {numbers[:8]}{more} (all ranks)"

    def held_out(self) -> Iterator[SentenceBatch]:
        """None: dev rows are evaluated by the metrics of their vectors."""
        return iter(())

    def _numbers(self, step: int) -> Numbers:
        """The rows of a step, of all ranks."""
        readings = range(step * self._batch, (step + 1) * self._batch)
        return np.array([self._epochs.row(reading) for reading in readings], dtype=np.int64)

    def _one_chunk(self, numbers: Numbers) -> SentenceBatch:
        texts = self._data.rows[numbers]  # (n, c)
        return SentenceBatch(
            chunks=(self._inputs(texts.reshape(-1)),),
            place=torch.arange(texts.size).view(texts.shape),
            targets=self._targets(numbers),
            keys=torch.from_numpy(texts),
        )

    def _whole(self, every: Numbers, own: Numbers, start: int) -> SentenceBatch:
        texts = self._data.rows[own]
        flat = texts.reshape(-1)
        order = self._chunked(self._lengths[flat]) if len(flat) else []
        place = np.empty(len(flat), dtype=np.int64)
        place[[text for part in order for text in part]] = np.arange(len(flat))
        return SentenceBatch(
            chunks=tuple(self._inputs(flat[part]) for part in order),
            place=torch.from_numpy(place.reshape(texts.shape)),
            targets=self._targets(every),
            keys=torch.from_numpy(self._data.rows[every]),
            start=start,
        )

    def _chunked(self, lengths: Numbers) -> list[list[int]]:
        """Which texts pass the encoder together: all at once if they fit."""
        if lengths.sum() <= self._micro_tokens:
            return list(pack(lengths, self._micro_tokens))
        # Half as large: chunks of many shapes fragment the heap, by a third of the peak of one.
        return list(pack(lengths, max(1, self._micro_tokens // 2)))

    def _targets(self, numbers: Numbers) -> Tensor | None:
        targets = self._data.targets
        return None if targets is None else torch.from_numpy(targets[numbers]).float()

    def _inputs(self, texts: Numbers) -> Inputs:
        return packed_texts([self._data.texts[text] for text in texts.tolist()])


def packed_texts(texts: Sequence[Ints]) -> Inputs:
    """Single texts as a model reads them."""
    ids = np.concatenate(texts)
    return Inputs.of(ids, [len(one) for one in texts], channels={SEGMENTS: np.zeros_like(ids)})


def _sentence_model(model: nn.Module) -> SentenceModel:
    if not isinstance(model, SentenceModel):
        raise TypeError(f"sentence training trains a SentenceModel, not {type(model)}")
    return model


def cached_backward(
    model: SentenceModel, batch: SentenceBatch, step: StepGradients, *, ranks: Ranks, part: str
) -> None:
    """Accumulate the gradients of a batch, and record its loss."""
    batch = batch.to(step.execution.device)
    states = []
    parts = []
    with torch.no_grad():
        for chunk in batch.chunks:
            states.append(RandomState(step.execution.device))
            with step.execution.precision.context():
                parts.append(model(chunk).float())
    after = RandomState(step.execution.device)
    texts = torch.cat(parts) if parts else torch.zeros(0, model.width, device=step.execution.device)
    rows, columns = batch.place.shape
    gradients = torch.zeros_like(texts)
    gradients[batch.place.reshape(-1)] = vector_gradients(
        texts[batch.place.reshape(-1)].view(rows, columns, texts.shape[1]),
        batch.start,
        lambda every: model.objective(every.unbind(dim=1), batch.targets, batch.keys),
        step,
        ranks=ranks,
        part=part,
    ).view(rows * columns, texts.shape[1])
    done = 0
    for chunk, state in zip(batch.chunks, states, strict=True):
        state.restore()
        with step.execution.precision.context():
            vectors = model(chunk)
        own = gradients[done : done + len(vectors)]
        torch.autograd.backward(vectors, own.to(vectors.dtype))
        done += len(vectors)
    after.restore()
