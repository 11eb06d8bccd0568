"""PlainWriter: the whole text again at every step; slow, and what the others are compared with."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from bertsmith.models.build import Model
from bertsmith.runtime.generation.forms import Form, vocabulary_logits
from bertsmith.runtime.generation.writer import (
    Ids,
    State,
    add_tokens,
    check_sources,
    first_state,
    keep_rows,
)


class PlainWriter:
    """A writer of any form without a cache."""

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
        return vocabulary_logits(self.model, hidden)
