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
from bertsmith.nn.layout import Causal, Layout, Prefix
from bertsmith.nn.relative.encoder import RelativeEncoder
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
        found: Encoded = model(inputs.to(device_of(model)), rows=last_rows(lengths))
        return found.hidden


@dataclass(frozen=True, slots=True)
class QueryForm(CausalForm):
    """A prompt and its continuation, read left to right; a query asks for the next token (XLNet).

    What a row has seen never changes, so a cache gives the same logits as the whole text.
    """

    def whole(self, model: Model, sources: Sequence[Ids], written: Sequence[Ids]) -> Tensor:
        """The query after each text, where any token stands: nobody sees it. -> (R, D)."""
        ends = [np.zeros(1, dtype=np.int64)] * len(sources)
        texts = [np.concatenate(parts) for parts in zip(sources, written, ends, strict=True)]
        lengths = [len(text) for text in texts]
        inputs = Inputs.of(np.concatenate(texts), lengths, sees=Causal()).to(device_of(model))
        found: Encoded = relative(model)(inputs, queries=last_rows(lengths).to(inputs.ids.device))
        return found.hidden if found.queried is None else found.queried


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
        found: Encoded = model(inputs.to(device_of(model)), rows=last_rows(lengths))
        return found.hidden


@dataclass(frozen=True, slots=True)
class CrossForm:
    """A source for the encoder, and a target of its own for the decoder (BART, MASS).

    `start` is the decoder's first token. `first_position` is its position: MASS predicts a span at
    the positions that it has in the source.
    """

    start: int
    first_position: int = 0

    def begun(self, source: Ids) -> tuple[int, ...]:
        """The start token."""
        return (self.start,)

    def positions_left(self, model: Model, source: Ids, steps: int) -> int | None:
        """See `Writer.positions_left`; both sides have as many positions."""
        longest = model.spec.longest
        if longest is None:
            return None
        too_long = min(longest - len(source), 0)
        return too_long or longest - self.first_position - 1 - steps

    def whole(self, model: Model, sources: Sequence[Ids], written: Sequence[Ids]) -> Tensor:
        """The last decoder row of each text: -> (R, D)."""
        memory, layout = encoded(model, sources)
        lengths = [1 + len(own) for own in written]
        rows = [np.concatenate([[self.start], own]) for own in written]
        positions = [np.arange(length) + self.first_position for length in lengths]
        inputs = Inputs.of(np.concatenate(rows), lengths, positions=np.concatenate(positions))
        return model.decode(inputs, memory, layout, rows=last_rows(lengths))


class FormWriter:
    """What writers of a model have in common, whatever its form."""

    def __init__(self, model: Model, form: Form) -> None:
        self.model, self.form = model, form

    @property
    def vocab_size(self) -> int:
        """V, the width of the logits."""
        return self.model.spec.vocab_size

    def begun(self, source: Ids) -> tuple[int, ...]:
        """See `Writer.begun`."""
        return self.form.begun(source)

    def positions_left(self, source: Ids, steps: int = 0) -> int | None:
        """See `Writer.positions_left`."""
        return self.form.positions_left(self.model, source, steps)

    def logits(self, rows: Tensor) -> Tensor:
        """Logits of the next token, float32: hidden rows (P, D) -> (P, V)."""
        tokens = self.model.encoder.embeddings.tokens.weight
        logits: Tensor = self.model.vocabulary_head(rows, tokens)
        return logits.float()


def last_rows(lengths: Sequence[int]) -> Tensor:
    """The last row of each text of a packed batch: -> (B,)."""
    return torch.from_numpy(np.cumsum(lengths, dtype=np.int64) - 1)


def encoded(model: Model, sources: Sequence[Ids]) -> tuple[Tensor, Layout]:
    """The encoder's rows of sources, as a decoder attends to them: -> (S, D) and their layout."""
    inputs = Inputs.of(np.concatenate(sources), [len(source) for source in sources])
    rows: Encoded = model(inputs.to(device_of(model)))
    return rows.hidden, inputs.layout


def relative(model: Model) -> RelativeEncoder:
    """The encoder with two streams of a model that writes by queries."""
    if not isinstance(model.encoder, RelativeEncoder):
        raise ConfigError(f"this {model.variant.name} model has no query stream to write with")
    return model.encoder


def device_of(model: Model) -> torch.device:
    """Where a model is."""
    return model.encoder.embeddings.tokens.weight.device
