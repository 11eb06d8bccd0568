"""PlainWriter: the whole text again at every step; slow, and what the others are compared with."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from bertsmith.runtime.generation.forms import FormWriter
from bertsmith.runtime.generation.writer import (
    Ids,
    State,
    add_tokens,
    check_sources,
    first_state,
    keep_rows,
)


class PlainWriter(FormWriter):
    """A writer of any form without a cache."""

    def begin(self, sources: Sequence[Ids]) -> State:
        """See `Writer.begin`."""
        check_sources(self, sources)
        state = first_state(sources, torch.empty(0, self.vocab_size))
        state.logits = self._logits(state)
        return state

    def step(self, state: State, tokens: Tensor) -> Tensor:
        """See `Writer.step`."""
        add_tokens(state, tokens)
        state.logits = self._logits(state)
        return state.logits

    def keep(self, state: State, rows: Tensor) -> None:
        """See `Writer.keep`."""
        keep_rows(state, rows)

    @torch.inference_mode()
    def _logits(self, state: State) -> Tensor:
        """The whole texts of all live rows: -> (R, V)."""
        if not len(state.texts):
            return torch.empty(0, self.vocab_size)
        sources = [state.sources[text] for text in state.texts.tolist()]
        hidden = self.form.whole(self.model, sources, list(state.written.numpy()))
        return self.logits(hidden)
