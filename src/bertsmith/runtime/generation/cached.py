"""Writers with a cache: sources are read once, and each step computes its new rows only."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from bertsmith.errors import TextError
from bertsmith.models.build import Model
from bertsmith.nn.cache.cache import Cache
from bertsmith.nn.encoder import Encoded
from bertsmith.nn.inputs import SEGMENTS, Inputs
from bertsmith.nn.layout import Causal, Layout, Prefix
from bertsmith.runtime.generation.forms import (
    CausalForm,
    CrossForm,
    Form,
    FormWriter,
    PrefixForm,
    QueryForm,
    device_of,
    encoded,
    last_rows,
    relative,
)
from bertsmith.runtime.generation.writer import (
    Ids,
    State,
    add_tokens,
    check_sources,
    first_state,
    keep_rows,
)


class CachedWriter(FormWriter, ABC):
    """What the writers with a cache have in common."""

    @torch.inference_mode()
    def begin(self, sources: Sequence[Ids]) -> State:
        """See `Writer.begin`."""
        check_sources(self, sources)
        if not sources:
            return first_state(sources, torch.empty(0, self.vocab_size))
        # Sorted by length, sources of about equal length share a call in attention.
        order = np.argsort([-len(source) for source in sources], kind="stable")
        hidden, cache = self._begin([sources[number] for number in order])
        if len(order) > 1:
            back = np.argsort(order)
            cache.keep(back)
            hidden = hidden.index_select(0, torch.from_numpy(back).to(hidden.device))
        return first_state(sources, self.logits(hidden), cache)

    @torch.inference_mode()
    def step(self, state: State, tokens: Tensor) -> Tensor:
        """See `Writer.step`."""
        if len(tokens) != len(state.texts):
            raise TextError(f"{len(tokens)} tokens for {len(state.texts)} live rows")
        add_tokens(state, tokens)
        if state.cache is None:
            state.logits = torch.empty(0, self.vocab_size)
        else:
            state.logits = self.logits(self._step(state.cache, tokens))
        return state.logits

    @torch.inference_mode()
    def keep(self, state: State, rows: Tensor) -> None:
        """See `Writer.keep`."""
        chosen = keep_rows(state, rows)
        if not len(chosen):
            state.cache = None
        elif state.cache is not None:
            state.cache.keep(chosen.numpy())

    @abstractmethod
    def _begin(self, sources: Sequence[Ids]) -> tuple[Tensor, Cache]:
        """Read sources, longest first: the rows that predict the first token (B, D)."""

    @abstractmethod
    def _step(self, cache: Cache, tokens: Tensor) -> Tensor:
        """Read the newest tokens (R,): the rows that predict the next ones (R, D)."""

    def _encode(
        self,
        inputs: Inputs,
        cache: Cache,
        rows: Tensor | None = None,
        *,
        stay: int | None = None,
    ) -> Tensor:
        """A pass of the encoder, of which `stay` rows per text remain in the cache."""
        device = device_of(self.model)
        rows = None if rows is None else rows.to(device)
        found: Encoded = self.model(inputs.to(device), rows=rows, cache=cache)
        cache.advance(stay)
        return found.hidden


class CausalWriter(CachedWriter):
    """Continues prompts with a causal model (causal BERT, GPT, GPT-2)."""

    def __init__(self, model: Model) -> None:
        super().__init__(model, CausalForm())

    def _begin(self, sources: Sequence[Ids]) -> tuple[Tensor, Cache]:
        cache = self.model.encoder.cache()
        lengths = [len(source) for source in sources]
        inputs = Inputs.of(np.concatenate(sources), lengths, sees=Causal())
        return self._encode(inputs, cache, last_rows(lengths)), cache

    def _step(self, cache: Cache, tokens: Tensor) -> Tensor:
        return self._encode(Inputs(tokens, cache.next_layout()), cache)


class QueryWriter(CachedWriter):
    """Continues prompts with a model of two streams (XLNet).

    Each step reads the newest token as a content row, which stays, and a query for the next one,
    which sees all content rows, not itself, and leaves.
    """

    def __init__(self, model: Model) -> None:
        super().__init__(model, QueryForm())
        self._encoder = relative(model)

    def _begin(self, sources: Sequence[Ids]) -> tuple[Tensor, Cache]:
        cache = self._encoder.cache()
        lengths = [len(source) for source in sources]
        inputs = Inputs.of(np.concatenate(sources), lengths, sees=Causal())
        self._encode(inputs, cache, torch.empty(0, dtype=torch.long))
        cache.last_unseen = True
        rows = torch.arange(len(sources))
        return self._encode(self._asking(rows * 0, rows, cache.next_layout()), cache, stay=0), cache

    def _step(self, cache: Cache, tokens: Tensor) -> Tensor:
        pairs = torch.stack([tokens, torch.zeros_like(tokens)], dim=1).flatten()
        rows = torch.arange(1, len(pairs), 2)
        return self._encode(self._asking(pairs, rows, cache.next_layout(2)), cache, rows, stay=1)

    def _asking(self, ids: Tensor, rows: Tensor, layout: Layout) -> Inputs:
        """Content rows (N,), of which `rows` (R,) are queries in truth."""
        vectors = self._encoder.query_row.expand(len(rows), -1)
        at = rows.to(vectors.device)
        return Inputs(ids.to(vectors.device), layout, vectors=vectors, vector_rows=at)


class PrefixWriter(CachedWriter):
    """Writes a target behind a source with a bidirectional model (UniLM, SimBERT)."""

    def __init__(self, model: Model, form: PrefixForm) -> None:
        super().__init__(model, form)
        self._ahead = form.ahead
        self._segments = form.source_segment, form.target_segment

    def _begin(self, sources: Sequence[Ids]) -> tuple[Tensor, Cache]:
        cache = self.model.encoder.cache()
        lengths = [len(source) for source in sources]
        ids = np.concatenate(sources)
        segments = {SEGMENTS: np.full(len(ids), self._segments[0])}
        inputs = Inputs.of(ids, lengths, sees=Prefix(tuple(lengths)), channels=segments)
        if not self._ahead:
            return self._encode(inputs, cache, last_rows(lengths)), cache
        self._encode(inputs, cache, torch.empty(0, dtype=torch.long))
        masks = torch.full((len(sources),), self._ahead[0])
        return self._encode(self._target(masks, cache.next_layout()), cache, stay=0), cache

    def _step(self, cache: Cache, tokens: Tensor) -> Tensor:
        if not self._ahead:
            return self._encode(self._target(tokens, cache.next_layout()), cache)
        masks = torch.full_like(tokens, self._ahead[0])
        pairs = torch.stack([tokens, masks], dim=1).flatten()
        rows = torch.arange(1, len(pairs), 2)
        return self._encode(self._target(pairs, cache.next_layout(2)), cache, rows, stay=1)

    def _target(self, ids: Tensor, layout: Layout) -> Inputs:
        channels: Mapping[str, Tensor] = {SEGMENTS: torch.full_like(ids, self._segments[1])}
        return Inputs(ids, layout, channels)


class CrossWriter(CachedWriter):
    """Writes with a decoder that attends to an encoder's rows (BART, MASS)."""

    def __init__(self, model: Model, form: CrossForm) -> None:
        super().__init__(model, form)
        self._start, self._first = form.start, form.first_position

    def _begin(self, sources: Sequence[Ids]) -> tuple[Tensor, Cache]:
        memory, layout = encoded(self.model, sources)
        if self.model.decoder is None:
            raise TextError("this model has no decoder to write with")
        cache = self.model.decoder.cache()
        starts = torch.full((len(sources),), self._start)
        positions = torch.full((len(sources),), self._first)
        inputs = Inputs(starts, Layout((1,) * len(sources), positions, Causal()))
        hidden = self.model.decode(inputs.to(memory.device), memory, layout, cache=cache)
        cache.advance()
        return hidden, cache

    def _step(self, cache: Cache, tokens: Tensor) -> Tensor:
        layout = cache.next_layout()
        if self._first:
            layout = Layout(layout.lengths, layout.positions + self._first, layout.sees)
        inputs = Inputs(tokens, layout).to(device_of(self.model))
        hidden = self.model.decode(inputs, None, None, cache=cache)
        cache.advance()
        return hidden


def writer_of(model: Model, form: Form) -> CachedWriter:
    """The writer with a cache of a form."""
    if isinstance(form, PrefixForm):
        return PrefixWriter(model, form)
    if isinstance(form, QueryForm):
        return QueryWriter(model)
    if isinstance(form, CrossForm):
        return CrossWriter(model, form)
    return CausalWriter(model)
