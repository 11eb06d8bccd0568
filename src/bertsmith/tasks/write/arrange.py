"""Source and target as a batch of one kind of model, and the rows that predict the target.

Three kinds: one bidirectional text in two parts (UniLM, SimBERT), a prompt and its continuation
(causal models), two texts (encoder and decoder).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertsmith.errors import ConfigError, FolderError
from bertsmith.folders.generation import Writes
from bertsmith.models.build import Model
from bertsmith.models.spec import Spec
from bertsmith.nn.inputs import SEGMENTS, Inputs
from bertsmith.nn.layout import Causal, Dense, Prefix
from bertsmith.random_keys import Words, hashes
from bertsmith.text.encoding import Ints
from bertsmith.text.tokenizer import Tokenizer

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WritingBatch:
    """B texts: rows `at` (P,) of `inputs` predict the tokens `of` (P,).

    `memory` are the sources that a decoder looks at. `smoothing` of the labels is for training
    alone.
    """

    inputs: Inputs
    at: Tensor
    of: Tensor
    memory: Inputs | None = None
    smoothing: float = 0.0

    @property
    def tokens(self) -> int:
        """The tokens of all texts."""
        inside = self.inputs.layout.rows
        return inside if self.memory is None else inside + self.memory.layout.rows

    def to(self, device: torch.device | str) -> WritingBatch:
        """The same batch on a device."""
        return replace(
            self,
            inputs=self.inputs.to(device),
            at=self.at.to(device),
            of=self.of.to(device),
            memory=None if self.memory is None else self.memory.to(device),
        )

    def hidden(self, model: Model, *, also: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """The rows that predict (P, D), and those of `also` (Q,) -> (Q, D)."""
        if self.memory is not None:
            encoded = model(self.memory)
            return (
                model.decode(self.inputs, encoded.hidden, self.memory.layout, rows=self.at),
                None,
            )
        if also is None:
            return model(self.inputs, rows=self.at).hidden, None
        every = model(self.inputs, rows=torch.cat([also, self.at])).hidden
        return every[len(also) :], every[: len(also)]


class Arrangement(ABC):
    """How one kind of model reads sources and predicts targets."""

    @abstractmethod
    def training(
        self, sources: Sequence[Ints], targets: Sequence[Ints], keys: Words
    ) -> WritingBatch:
        """A batch to learn from; `keys` (B,) are what random choices depend on."""

    def exact(self, sources: Sequence[Ints], targets: Sequence[Ints]) -> WritingBatch:
        """A batch whose loss is that of writing the targets from left to right."""
        return self.training(sources, targets, np.zeros(len(sources), dtype=np.uint64))


@dataclass(frozen=True, slots=True)
class ShiftedPrefix(Arrangement):
    """Each row predicts the token after it, from the last row of the source on (SimBERT)."""

    writes: Writes

    def training(
        self, sources: Sequence[Ints], targets: Sequence[Ints], keys: Words
    ) -> WritingBatch:
        """Every token of the targets; nothing is random."""
        lengths = [len(s) + len(t) for s, t in zip(sources, targets, strict=True)]
        starts = np.cumsum([0, *lengths[:-1]])
        at = _places([b + len(s) - 1 for b, s in zip(starts, sources, strict=True)], targets)
        return WritingBatch(
            inputs=prefix_inputs(sources, targets, self.writes),
            at=torch.from_numpy(at),
            of=_joined(targets),
        )


@dataclass(frozen=True, slots=True)
class MaskedPrefix(Arrangement):
    """A share of the target tokens is hidden, and each predicted where it stood (UniLM)."""

    writes: Writes
    mask_id: int
    share: float

    def training(
        self, sources: Sequence[Ints], targets: Sequence[Ints], keys: Words
    ) -> WritingBatch:
        """Hidden tokens alone; in every target at least one, and round(share x length) of them."""
        lengths = [len(s) + len(t) for s, t in zip(sources, targets, strict=True)]
        starts = np.cumsum([0, *lengths[:-1]])
        shown, at, of = [], [], []
        for start, source, target, key in zip(starts, sources, targets, keys, strict=True):
            count = min(len(target), max(1, round(self.share * len(target))))
            order = np.argsort(hashes(int(key), np.arange(len(target))), kind="stable")
            chosen = np.sort(order[:count])
            masked = target.copy()
            masked[chosen] = self.mask_id
            shown.append(masked)
            at.append(chosen + start + len(source))
            of.append(target[chosen])
        return WritingBatch(
            inputs=prefix_inputs(sources, shown, self.writes),
            at=torch.from_numpy(np.concatenate(at)),
            of=_joined(of),
        )

    def exact(self, sources: Sequence[Ints], targets: Sequence[Ints]) -> WritingBatch:
        """One mask token per target token, after the text but at the position of that token.

        It sees the source, the target tokens before it, and itself: what the model sees when it has
        written those.
        """
        triples = [
            np.concatenate([s, t, np.full(len(t), self.mask_id)])
            for s, t in zip(sources, targets, strict=True)
        ]
        lengths = [len(one) for one in triples]
        starts = np.cumsum([0, *lengths[:-1]])
        visible = np.zeros((len(triples), max(lengths), max(lengths)), dtype=bool)
        positions, segments, at = [], [], []
        for number, (source, target) in enumerate(zip(sources, targets, strict=True)):
            s, t = len(source), len(target)
            before = np.tri(t, dtype=bool)
            visible[number, : s + 2 * t, :s] = True
            visible[number, s : s + t, s : s + t] = before
            visible[number, s + t : s + 2 * t, s : s + t] = np.tri(t, k=-1, dtype=bool)
            visible[number, s + t : s + 2 * t, s + t : s + 2 * t] = np.eye(t, dtype=bool)
            positions.append(np.r_[0 : s + t, s : s + t])
            segments.append(_segments(self.writes, s, 2 * t))
            at.append(np.arange(t) + starts[number] + s + t)
        inputs = Inputs.of(
            np.concatenate(triples),
            lengths,
            positions=np.concatenate(positions),
            sees=Dense(torch.from_numpy(visible)),
            channels={SEGMENTS: np.concatenate(segments)},
        )
        return WritingBatch(
            inputs=inputs, at=torch.from_numpy(np.concatenate(at)), of=_joined(targets)
        )


class CausalPair(Arrangement):
    """A prompt and its continuation; every row sees the rows before it."""

    def training(
        self, sources: Sequence[Ints], targets: Sequence[Ints], keys: Words
    ) -> WritingBatch:
        """Every token of the targets; nothing is random."""
        texts = [np.concatenate(pair) for pair in zip(sources, targets, strict=True)]
        lengths = [len(text) for text in texts]
        starts = np.cumsum([0, *lengths[:-1]])
        at = _places([b + len(s) - 1 for b, s in zip(starts, sources, strict=True)], targets)
        ids = np.concatenate(texts)
        inputs = Inputs.of(ids, lengths, sees=Causal(), channels={SEGMENTS: np.zeros_like(ids)})
        return WritingBatch(inputs=inputs, at=torch.from_numpy(at), of=_joined(targets))


@dataclass(frozen=True, slots=True)
class CrossPair(Arrangement):
    """The encoder reads the source; the decoder reads the target behind a start token."""

    start: int

    def training(
        self, sources: Sequence[Ints], targets: Sequence[Ints], keys: Words
    ) -> WritingBatch:
        """Every token of the targets, their special tokens too; nothing is random."""
        read = [np.concatenate([[self.start], target[:-1]]) for target in targets]
        inputs = Inputs.of(np.concatenate(read), [len(one) for one in read], sees=Causal())
        return WritingBatch(
            inputs=inputs,
            at=torch.arange(inputs.layout.rows),
            of=_joined(targets),
            memory=Inputs.of(np.concatenate(sources), [len(one) for one in sources]),
        )


def arrangement_of(
    spec: Spec, tokenizer: Tokenizer, writes: Writes, *, share: float
) -> Arrangement:
    """The arrangement for a model of this shape; `writes` counts for bidirectional ones alone."""
    if spec.decoder is not None:
        return CrossPair(spec.decoder.start)
    if spec.sees == "before":
        return CausalPair()
    if writes.by == "shift":
        return ShiftedPrefix(writes)
    mask = tokenizer.special.mask
    if mask is None:
        raise FolderError("writing by mask needs a mask token, and the tokenizer has none")
    return MaskedPrefix(writes, mask, share)


def chosen_writes(
    spec: Spec, stored: Writes | None, wanted: str, *, usual: str, folder: str
) -> Writes:
    """How a bidirectional model is to write: as its folder says, else as the recipe does.

    The two ways cannot be mixed: a model that learned one would have to unlearn it first.
    """
    if stored is not None:
        if wanted not in ("auto", stored.by):
            raise ConfigError(
                f"{folder} learned to write by {stored.by}, and writing.by = {wanted}: the two "
                f"cannot be mixed; leave the setting out, or begin with a model that does not "
                "write yet"
            )
        return stored
    by = usual if wanted == "auto" else wanted
    return Writes(by="mask" if by == "mask" else "shift", target_segment=int(spec.reads_segments))


def prefix_inputs(sources: Sequence[Ints], targets: Sequence[Ints], writes: Writes) -> Inputs:
    """Sources and targets side by side, under the visibility of a prefix."""
    pairs = list(zip(sources, targets, strict=True))
    return Inputs.of(
        np.concatenate([part for pair in pairs for part in pair]),
        [len(source) + len(target) for source, target in pairs],
        sees=Prefix(tuple(len(source) for source in sources)),
        channels={SEGMENTS: np.concatenate([_segments(writes, len(s), len(t)) for s, t in pairs])},
    )


def _segments(writes: Writes, source: int, target: int) -> Numbers:
    return np.repeat([writes.source_segment, writes.target_segment], [source, target])


def _places(firsts: Sequence[int], targets: Sequence[Ints]) -> Numbers:
    """Rows that predict whole targets, given the first of each."""
    return np.concatenate(
        [np.arange(len(target)) + first for first, target in zip(firsts, targets, strict=True)]
    )


def _joined(parts: Sequence[Ints]) -> Tensor:
    return torch.from_numpy(np.concatenate(parts).astype(np.int64))
