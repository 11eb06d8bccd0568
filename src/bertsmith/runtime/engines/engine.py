"""What runs a batch through an encoder, and the plain torch engine that works everywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Protocol

import torch
from torch import Tensor

from bertsmith.nn.encoder import Encoder
from bertsmith.runtime.batches import RowBatch


class Engine(Protocol):
    """One way to run an encoder."""

    name: str  # as shown to the user
    budget: int  # tokens a batch
    streams: int  # batches worth running at the same time

    def rows(self, batch: RowBatch) -> Tensor:
        """The last hidden rows of a batch, float32: -> (T, D)."""
        ...


class EagerEngine:
    """The encoder as torch runs it, in any precision, on any device."""

    budget = 2048
    streams = 1  # torch shares each operation among the cores by itself

    def __init__(self, encoder: Encoder, *, device: torch.device, dtype: torch.dtype) -> None:
        self.name = f"eager-{_DTYPES.get(dtype, str(dtype))}"
        if device.type != "cpu":
            self.name += f" on {device}"
            self.budget = 16_384
        self._encoder = encoder
        self._device = device

    def rows(self, batch: RowBatch) -> Tensor:
        """The last hidden rows of a batch, float32: -> (T, D)."""
        with torch.inference_mode():
            hidden: Tensor = self._encoder(batch.inputs().to(self._device)).hidden
            return hidden.float()


_SMALLEST_BATCH = 128  # tokens; smaller ones waste more than a second core wins


def batch_budget(engine: Engine, tokens: int) -> int:
    """Tokens a batch when there are `tokens` in all: little work is still shared by all streams."""
    return min(engine.budget, max(_SMALLEST_BATCH, tokens // engine.streams + 1))


_DTYPES = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}


def run_streams(
    engine: Engine, batches: Iterable[RowBatch], finish: Callable[[RowBatch, Tensor], Tensor]
) -> Iterator[tuple[RowBatch, Tensor]]:
    """Run batches through an engine, several at once, and yield (batch, finish(batch, rows)).

    Batches come back as they end, not in order. At most two a stream are held, whatever the input.
    `finish` runs in the calling thread.
    """
    if engine.streams == 1:
        for batch in batches:
            yield batch, finish(batch, engine.rows(batch))
        return
    with ThreadPoolExecutor(engine.streams, thread_name_prefix="bertsmith-stream") as pool:
        running: dict[Future[Tensor], RowBatch] = {}
        try:
            for batch in batches:
                if len(running) >= 2 * engine.streams:
                    yield from _ended(running, finish)
                running[pool.submit(engine.rows, batch)] = batch
            while running:
                yield from _ended(running, finish)
        finally:
            for future in running:
                future.cancel()


def _ended(
    running: dict[Future[Tensor], RowBatch], finish: Callable[[RowBatch, Tensor], Tensor]
) -> Iterator[tuple[RowBatch, Tensor]]:
    done, _ = wait(running, return_when=FIRST_COMPLETED)
    for future in done:
        batch = running.pop(future)
        yield batch, finish(batch, future.result())
