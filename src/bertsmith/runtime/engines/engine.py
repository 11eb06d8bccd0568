"""Engine: runs a batch through an encoder; and the eager torch engine that works everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from bertsmith.nn.encoder import Encoder, Want
from bertsmith.nn.sentence_head import mix_layers
from bertsmith.runtime.engines.batches import RowBatch

_DTYPES = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}
_SMALLEST_BATCH = 128  # tokens; smaller ones waste more than a second core wins


class Engine(Protocol):
    """One way to run an encoder; `hidden` may be called by several threads at once.

    An engine refuses a batch with channels, positions or visibility that it cannot compute with.
    """

    name: str  # as shown to the user
    budget: int  # tokens per batch
    streams: int  # batches worth running at the same time

    def hidden(self, batch: RowBatch, rows: Sequence[int] | None = None) -> Tensor:
        """The last hidden states, float32: (T, D), or (P, D) of the rows that will be read."""
        ...


class EagerEngine:
    """The encoder as torch runs it, in any precision, on any device, for every kind of batch.

    With a `mix`, the hidden states are the mean of the embeddings and all layers, weighted by it.
    """

    budget = 2048
    streams = 1  # torch divides each operation among the cores by itself

    def __init__(
        self,
        encoder: Encoder,
        *,
        device: torch.device,
        dtype: torch.dtype,
        mix: Sequence[float] | None = None,
    ) -> None:
        self.name = f"eager-{_DTYPES.get(dtype, str(dtype))}"
        if device.type != "cpu":
            self.name += f" on {device}"
            self.budget = 16_384
        self._encoder = encoder
        self._device = device
        self._mix = mix

    def hidden(self, batch: RowBatch, rows: Sequence[int] | None = None) -> Tensor:
        """(T, D), or (P, D): the last block computes only the `rows` that will be read."""
        with torch.inference_mode():
            chosen = None
            if rows is not None:
                chosen = torch.tensor(rows, dtype=torch.long, device=self._device)
            inputs = batch.inputs().to(self._device)
            if self._mix is None:
                hidden: Tensor = self._encoder(inputs, rows=chosen).hidden
                return hidden.float()
            layers = self._encoder(inputs, want=Want(layers=True)).layers
            mixed = mix_layers([layer.float() for layer in layers], self._mix)
            return mixed if chosen is None else mixed.index_select(0, chosen)


def batch_budget(engine: Engine, tokens: int) -> int:
    """Tokens per batch for `tokens` in all: little work is still divided among all streams."""
    return min(engine.budget, max(_SMALLEST_BATCH, tokens // engine.streams + 1))
