"""SimBERT: pairs in both directions, written and compared in one pass.

Each row of a batch stands next to its mirror image; both losses come from the same hidden rows: the
target tokens, and the first rows as sentence vectors, whose neighbor must be found among the batch.
Published as code at github.com/ZhuiyiTechnology/simbert; the linear layer over its first row is
left out here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from bertsmith.errors import ConfigError
from bertsmith.models.build import Model
from bertsmith.nn.loss import LossSum, Score
from bertsmith.nn.packing import pack
from bertsmith.objectives.masked_lm import token_loss
from bertsmith.tasks.write.arrange import Arrangement, WritingBatch
from bertsmith.tasks.write.encoding import EncodedPairs
from bertsmith.text.encoding import Ints
from bertsmith.training.cached_gradients import RandomState, vector_gradients
from bertsmith.training.execution.ranks import Ranks
from bertsmith.training.kinds.write.recipe import SimilaritySettings
from bertsmith.training.kinds.write.workload import PART, pair_sizes, some_pairs, writing_model
from bertsmith.training.loop.epochs import EpochRows
from bertsmith.training.loop.workload import Losses, StepGradients, Workload
from bertsmith.training.recipe import RowPlan

Numbers = NDArray[np.int64]
SIMILARITY = "similarity"


def candidates(keys: Tensor) -> Tensor:
    """Which rows each row chooses its neighbor from: keys (P, 2) -> (2P, 2P), boolean.

    Rows 2p and 2p + 1 are the two directions of pair p. Rows of pairs that share a text are no
    negatives of each other; a row never chooses itself.
    """
    same = (keys[:, None, :, None] == keys[None, :, None, :]).flatten(2).any(dim=2)  # (P, P)
    free = ~same.repeat_interleave(2, dim=0).repeat_interleave(2, dim=1)
    rows = torch.arange(len(free), device=keys.device)
    free[rows, rows ^ 1] = True
    return free


def similarity_logits(vectors: Tensor, keys: Tensor, scale: float) -> Tensor:
    """Vectors (2P, W) of the first rows, keys (P, 2) -> scaled cosines (2P, 2P), -inf elsewhere."""
    unit = F.normalize(vectors.float(), dim=1)
    return (unit @ unit.T * scale).masked_fill(~candidates(keys), -torch.inf)


def similarity_losses(vectors: Tensor, keys: Tensor, scale: float) -> Tensor:
    """The loss of each row for its neighbor: -> (2P,)."""
    logits = similarity_logits(vectors, keys, scale)
    neighbors = torch.arange(len(logits), device=logits.device) ^ 1
    return F.cross_entropy(logits, neighbors, reduction="none")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimilarBatch:
    """This rank's n pairs in both directions, in `chunks` that pass the encoder one by one.

    `firsts` are the first rows of each chunk's texts; `place` (2n,) is the vector of each row,
    counted over the chunks. `keys` (N, 2), equal for equal texts, are of the pairs of all ranks;
    the own ones begin at pair `start`.
    """

    chunks: tuple[WritingBatch, ...]
    firsts: tuple[Tensor, ...]
    place: Tensor
    keys: Tensor
    start: int = 0

    def to(self, device: torch.device | str) -> SimilarBatch:
        """The same batch on a device."""
        return replace(
            self,
            chunks=tuple(chunk.to(device) for chunk in self.chunks),
            firsts=tuple(rows.to(device) for rows in self.firsts),
            place=self.place.to(device),
            keys=self.keys.to(device),
        )

    def passes(self, model: Model) -> Iterator[tuple[WritingBatch, Tensor, Tensor]]:
        """Each chunk with its predicting rows (p, D) and its sentence vectors (b, D)."""
        for chunk, firsts in zip(self.chunks, self.firsts, strict=True):
            hidden, vectors = chunk.hidden(model, also=firsts)
            if vectors is None:
                raise ConfigError("similar sentences need one text for source and target")
            yield chunk, hidden, vectors


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BothDirections:
    """Pairs of similar texts: row 2p is pair p as it stands, row 2p + 1 the other way round."""

    rows: EncodedPairs
    keys: Numbers  # (P, 2) the number of each text

    def __len__(self) -> int:
        return len(self.keys)

    @classmethod
    def of(cls, sources: Sequence[Ints], targets: Sequence[Ints], texts: Numbers) -> BothDirections:
        """From the distinct texts as sources and as targets, and pairs (P, 2) of their numbers.

        Texts that are equal as sources, by truncation for example, have one key.
        """
        first: dict[bytes, int] = {}
        numbers = np.array(
            [first.setdefault(ids.tobytes(), len(first)) for ids in sources], dtype=np.int64
        )
        order = [pair for a, b in texts.tolist() for pair in ((a, b), (b, a))]
        rows = EncodedPairs(
            sources=[sources[a] for a, _ in order], targets=[targets[b] for _, b in order]
        )
        return cls(rows=rows, keys=numbers[texts])


class SimilarWorkload(Workload):
    """Batches of pairs in both directions, and both losses.

    A batch is one micro-batch, however large: more than `micro_tokens` tokens pass the encoder in
    several chunks, once without gradients for the vectors and once with them.
    """

    def __init__(
        self,
        arrangement: Arrangement,
        train: BothDirections,
        dev: BothDirections,
        *,
        settings: SimilaritySettings,
        plan: RowPlan,
        smoothing: float,
        seed: int,
        ranks: Ranks,
    ) -> None:
        if len(train) < 2:
            raise ConfigError("one pair has no negatives; give more pairs of similar texts")
        self._arrangement = arrangement
        self._train, self._dev = train, dev
        self._settings = settings
        self._batch, self._micro_tokens = plan.batch, plan.micro_tokens
        self._smoothing = smoothing
        self._ranks = ranks
        self._rows = EpochRows(len(train), batch=plan.batch, seed=seed, ranks=ranks)

    @property
    def weights(self) -> Mapping[str, float]:
        """Writing, and the similarity of sentences."""
        return {PART: 1.0, SIMILARITY: self._settings.weight}

    def micro_batches(self, step: int, share: float) -> list[SimilarBatch]:
        """This rank's pairs of a step, as one batch."""
        pairs, mine = self._rows.rows(step), self._rows.own_places()
        start = int(mine[0]) if len(mine) else 0
        return [
            self._made(
                self._train, pairs[mine], self._train.keys[pairs], start, smoothing=self._smoothing
            )
        ]

    def counts(self, batch: SimilarBatch) -> dict[str, int]:
        """Predicted tokens, and neighbors."""
        tokens = sum(len(chunk.of) for chunk in batch.chunks)
        return {PART: tokens, SIMILARITY: len(batch.place)}

    def loss(self, model: nn.Module, batch: SimilarBatch) -> Losses:
        """Both losses of all pairs of a batch, encoded at once."""
        module = writing_model(model)
        written = LossSum(torch.zeros((), device=batch.keys.device), 0)
        right = Score(0, 0)
        parts = []
        for chunk, hidden, vectors in batch.passes(module):
            loss, score = token_loss(module, hidden, chunk.of, smoothing=chunk.smoothing)
            written = written + loss
            right = Score(right.correct + score.correct, right.count + score.count)
            parts.append(vectors)
        logits = similarity_logits(torch.cat(parts)[batch.place], batch.keys, self._settings.scale)
        neighbors = torch.arange(len(logits), device=logits.device) ^ 1
        near = LossSum(F.cross_entropy(logits, neighbors, reduction="sum"), len(logits))
        found = Score((logits.argmax(dim=1) == neighbors).sum(), len(logits))
        return {PART: written, SIMILARITY: near}, {PART: right, SIMILARITY: found}

    def backward(self, batches: Sequence[Any], step: StepGradients) -> None:
        """In the usual way, unless the batch is too large for one pass, or shared by ranks."""
        if self._ranks.world == 1 and len(batches[0].chunks) == 1:
            super().backward(batches, step)
            return
        (batch,) = batches
        self._cached_backward(batch.to(step.execution.device), step)

    def tokens(self, batch: SimilarBatch) -> int:
        """The tokens of this rank's texts."""
        return sum(chunk.tokens for chunk in batch.chunks)

    def examples(self, step: int) -> str:
        """Which pairs a step reads, in words."""
        return self._rows.words(step, "training pairs")

    def held_out(self) -> Iterator[SimilarBatch]:
        """This rank's share of the dev pairs, in batches as large as those of training."""
        for part in self._dev_parts()[self._ranks.rank :: self._ranks.world]:
            yield self._made(self._dev, part, self._dev.keys[part], 0)

    def usual_loss(self) -> float:
        """The similarity loss on dev pairs of a model that only guesses: log of the candidates."""
        logs = [
            math.log(count)
            for part in self._dev_parts()
            for count in candidates(torch.from_numpy(self._dev.keys[part])).sum(dim=1).tolist()
        ]
        return sum(logs) / max(1, len(logs))

    def _dev_parts(self) -> list[Numbers]:
        numbers = np.arange(len(self._dev))
        return [numbers[at : at + self._batch] for at in range(0, len(numbers), self._batch)]

    def _made(
        self,
        data: BothDirections,
        own: Numbers,
        keys: Numbers,
        start: int,
        *,
        smoothing: float = 0.0,
    ) -> SimilarBatch:
        rows = (own[:, None] * 2 + np.arange(2)).reshape(-1)
        chunks, firsts, order = [], [], []
        for part in pack(pair_sizes(data.rows, rows), self._micro_tokens):
            pairs = some_pairs(data.rows, rows[part])
            none = np.zeros(len(part), dtype=np.uint64)
            chunk = replace(self._arrangement.training(*pairs, none), smoothing=smoothing)
            chunks.append(chunk)
            firsts.append(torch.tensor(chunk.inputs.layout.starts, dtype=torch.long))
            order += part
        place = np.empty(len(rows), dtype=np.int64)
        place[order] = np.arange(len(rows))
        return SimilarBatch(
            chunks=tuple(chunks),
            firsts=tuple(firsts),
            place=torch.from_numpy(place),
            keys=torch.from_numpy(keys),
            start=start,
        )

    def _cached_backward(self, batch: SimilarBatch, step: StepGradients) -> None:
        """Gradients of both losses, chunk by chunk; vectors of all ranks are compared first."""
        model, execution = writing_model(step.model), step.execution
        states, parts = [], []
        with torch.no_grad():
            for number in range(len(batch.chunks)):
                states.append(RandomState(execution.device))
                with execution.precision.context():
                    ((_, _, vectors),) = _one(batch, number).passes(model)
                parts.append(vectors.float())
        after = RandomState(execution.device)
        width = model.spec.hidden
        found = torch.cat(parts) if parts else torch.zeros(0, width, device=execution.device)
        gradients = torch.zeros_like(found)
        gradients[batch.place] = vector_gradients(
            found[batch.place],
            2 * batch.start,
            lambda every: similarity_losses(every, batch.keys, self._settings.scale),
            step,
            ranks=self._ranks,
            part=SIMILARITY,
        )
        done = 0
        for number, state in enumerate(states):
            state.restore()
            with execution.precision.context():
                ((chunk, hidden, vectors),) = _one(batch, number).passes(model)
                loss, score = token_loss(model, hidden, chunk.of, smoothing=chunk.smoothing)
            own = gradients[done : done + len(vectors)].to(vectors.dtype)
            step.backward({PART: loss}, also=(vectors, own))
            step.record({PART: loss}, {PART: score})
            done += len(vectors)
        after.restore()


def _one(batch: SimilarBatch, number: int) -> SimilarBatch:
    """A single chunk."""
    return replace(batch, chunks=(batch.chunks[number],), firsts=(batch.firsts[number],))
