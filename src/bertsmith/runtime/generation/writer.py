"""Writer: a model that gives the logits of the next token of many texts, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertsmith.errors import TextError
from bertsmith.nn.cache.cache import Cache

Ids = NDArray[np.integer]


@dataclass(slots=True, eq=False, kw_only=True)
class State:
    """R live rows, each a text under way; several rows (beams, answers) may share a source.

    All rows have the same number of new tokens; the newest one may not be in `written` yet.
    """

    sources: tuple[Ids, ...]  # the B sources or prompts of `begin`
    texts: Tensor  # (R,) the number of each live row's source, on the CPU
    logits: Tensor  # (R, V) of the next token, by the newest `begin` or `step`; `keep` leaves them
    written: Tensor  # (R, steps) the new tokens that the model has read, on the CPU
    cache: Cache | None = None

    @property
    def steps(self) -> int:
        """How many steps the state has taken."""
        return self.written.shape[1]


class Writer(Protocol):
    """One way to write with a model; the first state has one live row per source, in order.

    Calls run in inference mode in the calling thread: who shares the model with others holds
    `Host.torch_turn` meanwhile.
    """

    @property
    def vocab_size(self) -> int:
        """V, the width of the logits."""
        ...

    def begun(self, source: Ids) -> tuple[int, ...]:
        """The tokens that stand before the first new one and count as written.

        The prompt of a causal model, the start token of a decoder, nothing after a prefix.
        """
        ...

    def positions_left(self, source: Ids, steps: int = 0) -> int | None:
        """How many steps are left after `steps`; one more token than that can be chosen.

        None if positions have no limit; less than 0 if the source itself is too long.
        """
        ...

    def begin(self, sources: Sequence[Ids]) -> State:
        """Run B sources or prompts, with their special tokens, through the model once."""
        ...

    def step(self, state: State, tokens: Tensor) -> Tensor:
        """The newest token of each live row (R,) -> logits of the next one (R, V)."""
        ...

    def keep(self, state: State, rows: Tensor) -> None:
        """Continue with these live rows (R',) only, in this order; a row may be named repeatedly.

        Beams change places, rows are repeated, finished texts leave. Memory of sources without
        live rows is released.
        """
        ...


def check_sources(writer: Writer, sources: Sequence[Ids]) -> None:
    """Refuse sources that the positions of a model cannot hold, or that are empty."""
    for number, source in enumerate(sources):
        if not len(source):
            raise TextError(f"source {number} has no tokens: a model needs at least one to begin")
        left = writer.positions_left(source)
        if left is not None and left < 0:
            raise TextError(
                f"source {number} has {len(source)} tokens, {-left} more than the positions of "
                "this model can hold; truncate it"
            )


def first_state(sources: Sequence[Ids], logits: Tensor, cache: Cache | None = None) -> State:
    """The state after `begin`: a live row per source, with the logits of its first token (B, V)."""
    return State(
        sources=tuple(sources),
        texts=torch.arange(len(sources)),
        logits=logits,
        written=torch.empty(len(sources), 0, dtype=torch.long),
        cache=cache,
    )


def add_tokens(state: State, tokens: Tensor) -> None:
    """The model is about to read the newest token of each live row (R,)."""
    state.written = torch.cat([state.written, tokens.cpu()[:, None]], dim=1)


def keep_rows(state: State, rows: Tensor) -> Tensor:
    """The part of `Writer.keep` that all writers share; the rows as an index on the CPU."""
    chosen = rows.to("cpu", torch.long)
    state.texts, state.written = state.texts[chosen], state.written[chosen]
    return chosen
