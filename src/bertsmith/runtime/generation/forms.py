"""Forms: how a model reads a source and what is written so far, as one text or as two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import torch
from torch import Tensor

from bertsmith.errors import ConfigError
from bertsmith.models.build import Model
from bertsmith.nn.encoder import Encoded
from bertsmith.nn.inputs import SEGMENTS, Inputs
from bertsmith.nn.layout import Causal, Prefix
from bertsmith.runtime.generation.writer import Ids


class Form(Protocol):
    """What source and target are for one kind of model."""

    def begun(self, source: Ids) -> tuple[int, ...]:
        """See `Writer.begun`."""
        ...

    def positions_left(self, model: Model, source: Ids, steps: int) -> int | None:
        """See `Writer.positions_left`."""
        ...

    def whole(self, model: Model, sources: Sequence[Ids], written: Sequence[Ids]) -> Tensor:
        """The hidden rows that predict the next token, each text in one pass: -> (R, D)."""
        ...


@dataclass(frozen=True, slots=True)
class CausalForm:
    """A prompt and its continuation, each row sees those before it (causal BERT, GPT, GPT-2)."""

    def begun(self, source: Ids) -> tuple[int, ...]:
        """The prompt."""
        return tuple(source.tolist())

    def positions_left(self, model: Model, source: Ids, steps: int) -> int | None:
        """See `Writer.positions_left`."""
        longest = model.spec.longest
        return None if longest is None else longest - len(source) - steps

    def whole(self, model: Model, sources: Sequence[Ids], written: Sequence[Ids]) -> Tensor:
        """The last row of each text: -> (R, D)."""
        texts = [np.concatenate(parts) for parts in zip(sources, written, strict=True)]
        lengths = [len(text) for text in texts]
        inputs = Inputs.of(np.concatenate(texts), lengths, sees=Causal())
        encoded: Encoded = model(inputs, rows=last_rows(lengths))
        return encoded.hidden


@dataclass(frozen=True, slots=True)
class PrefixForm:
    """A source that sees itself, a target that sees the source and what comes before it.

    One bidirectional encoder does both (UniLM, Dong et al. 2019, arXiv:1905.03197). By "mask" the
    row of a [MASK] after the newest token predicts the next one, by "shift" (SimBERT) the row of
    the newest token itself. A model trained by one cannot write by the other.
    """

    by: Literal["mask", "shift"]
    source_segment: int = 0
    target_segment: int = 1
    mask_id: int | None = None

    def __post_init__(self) -> None:
        if self.by == "mask" and self.mask_id is None:
            raise ConfigError("writing by mask needs a mask token, and the vocabulary has none")

    @property
    def ahead(self) -> tuple[int, ...]:
        """What stands after the newest token: the mask token, or nothing."""
        return () if self.by == "shift" or self.mask_id is None else (self.mask_id,)

    def begun(self, source: Ids) -> tuple[int, ...]:
        """Nothing: the source is read, not written."""
        return ()

    def positions_left(self, model: Model, source: Ids, steps: int) -> int | None:
        """See `Writer.positions_left`; the mask token needs a position, too."""
        longest = model.spec.longest
        return None if longest is None else longest - len(source) - len(self.ahead) - steps

    def whole(self, model: Model, sources: Sequence[Ids], written: Sequence[Ids]) -> Tensor:
        """The last row of each text: -> (R, D)."""
        ahead = np.array(self.ahead, dtype=np.int64)
        targets = [np.concatenate([own, ahead]) for own in written]
        texts = [np.concatenate(parts) for parts in zip(sources, targets, strict=True)]
        segments = [
            np.repeat([self.source_segment, self.target_segment], [len(source), len(target)])
            for source, target in zip(sources, targets, strict=True)
        ]
        lengths = [len(text) for text in texts]
        inputs = Inputs.of(
            np.concatenate(texts),
            lengths,
            sees=Prefix(tuple(len(source) for source in sources)),
            channels={SEGMENTS: np.concatenate(segments)},
        )
        encoded: Encoded = model(inputs, rows=last_rows(lengths))
        return encoded.hidden


def last_rows(lengths: Sequence[int]) -> Tensor:
    """The last row of each text of a packed batch: -> (B,)."""
    return torch.from_numpy(np.cumsum(lengths, dtype=np.int64) - 1)


def vocabulary_logits(model: Model, rows: Tensor) -> Tensor:
    """Logits over the vocabulary, float32: (P, D) -> (P, V)."""
    kind = "language_model" if "language_model" in model.heads else "masked_lm"
    return model.logits(kind, rows).float()
