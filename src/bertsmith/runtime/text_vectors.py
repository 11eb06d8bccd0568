"""Where the vector of a text comes from: the rows of an encoder, or a table of token vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from bertsmith.nn.encoder import Encoder
from bertsmith.nn.sentence_head import SentenceHead
from bertsmith.runtime.engines.batches import Ids, RowBatch, pack_rows
from bertsmith.runtime.engines.engine import EagerEngine, batch_budget
from bertsmith.runtime.selection import Engines, OneEngine

if TYPE_CHECKING:
    from bertsmith.runtime.host import Host
    from bertsmith.text.tokenizer import Tokenizer

Numbered = tuple[Sequence[int], Tensor]
"""The numbers of some texts, and their vectors (B, W)."""

_TABLE_TOKENS = 1 << 18  # rows of the table that are read at once


class TextVectors(Protocol):
    """A source of vectors, as an embedder uses it."""

    @property
    def tokenizer(self) -> Tokenizer:
        """What turns texts into ids."""

    @property
    def width(self) -> int:
        """D, of a row or a token vector."""

    @property
    def longest(self) -> int | None:
        """The longest text in tokens, None if there is no limit."""

    @property
    def engine(self) -> str:
        """The name of the engine in use now."""

    def settle(self, tokens: int, texts: int) -> str:
        """Select the engine for that much work for good; its name."""

    def prepare(self, ids: Sequence[Ids]) -> VectorWork:
        """The work on texts given by their ids; may build and probe a faster engine first."""


class VectorWork(Protocol):
    """Computes the vectors of some texts, in any order, as they are ready."""

    def __call__(
        self, head: SentenceHead, *, skipped: int = 0, batch_size: int | None = None
    ) -> Iterator[Numbered]:
        """The first `skipped` rows of each text are not pooled; at most `batch_size` a batch."""


class EncoderVectors:
    """Vectors from the last hidden states of an encoder, or from a weighted mean of its layers."""

    def __init__(self, host: Host, mix: Sequence[float] | None = None) -> None:
        self._host = host
        # The native kernel returns the last layer only.
        self._engines: Engines = (
            host.engines if mix is None else OneEngine(mixing_engine(host, mix))
        )

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the model."""
        return self._host.tokenizer

    @property
    def width(self) -> int:
        """The hidden size."""
        return self._host.model.spec.hidden

    @property
    def longest(self) -> int | None:
        """The number of positions, or less if the tokenizer says so."""
        limits = (self._host.model.spec.longest, self._host.tokenizer.model_max_length)
        return min((limit for limit in limits if limit is not None), default=None)

    @property
    def engine(self) -> str:
        """The name of the engine in use now."""
        return self._engines.engine.name

    def settle(self, tokens: int, texts: int) -> str:
        """Select the engine for that much work for good; its name, with torch's rounding."""
        engine = self._engines.settle(self._engines.flops(tokens, texts))
        return engine.name + self._host.rounding

    def prepare(self, ids: Sequence[Ids]) -> VectorWork:
        """Encode and pool the texts by the engine for so much work, several batches at once."""
        tokens = sum(map(len, ids))
        engine = self._engines.prepare(self._engines.flops(tokens, len(ids)))

        def work(
            head: SentenceHead, *, skipped: int = 0, batch_size: int | None = None
        ) -> Iterator[Numbered]:
            def pooled(batch: RowBatch, hidden: Tensor) -> Tensor:
                with torch.inference_mode():
                    return head(hidden, batch.lengths, skipped)

            budget = batch_budget(engine, tokens)
            batches = pack_rows(ids, budget=budget, most_texts=batch_size)
            for batch, vectors in self._host.run(engine, batches, pooled):
                yield batch.texts, vectors

        return work


def mixing_engine(host: Host, mix: Sequence[float]) -> EagerEngine:
    """An engine whose hidden states are the weighted mean of all layers.

    Layers above the last one with a weight are not computed.
    """
    encoder = host.model.encoder
    used = max(1, *(number for number, weight in enumerate(mix) if weight))
    if used < len(encoder.blocks) and len(mix) == len(encoder.blocks) + 1:
        blocks = list(encoder.blocks)[:used]
        encoder = Encoder(
            encoder.embeddings,
            blocks,  # type: ignore[arg-type]
            positions=encoder.positions,
            causal=encoder.causal,
        )
        mix = mix[: used + 1]
    dtype = next(host.model.parameters()).dtype
    return EagerEngine(encoder.eval(), device=host.device, dtype=dtype, mix=mix)


class TableVectors:
    """Static vectors: the mean of the rows (V, D) that a text's tokens have in a table."""

    engine = "static"
    longest = None

    def __init__(self, table: Tensor, tokenizer: Tokenizer) -> None:
        self._table = table
        self.tokenizer = tokenizer

    @property
    def width(self) -> int:
        """The columns of the table."""
        return self._table.shape[1]

    def settle(self, tokens: int, texts: int) -> str:
        """There is one engine."""
        return self.engine

    def prepare(self, ids: Sequence[Ids]) -> VectorWork:
        """Average table rows; a text without tokens has the mean 0."""

        @torch.inference_mode()
        def work(
            head: SentenceHead, *, skipped: int = 0, batch_size: int | None = None
        ) -> Iterator[Numbered]:
            device = self._table.device
            for first, last in _runs(ids):
                lengths = np.array([len(text) for text in ids[first:last]], dtype=np.int64)
                starts = torch.from_numpy(np.cumsum(lengths) - lengths).to(device)
                joined = np.concatenate(ids[first:last]).astype(np.int64)
                means = F.embedding_bag(
                    torch.from_numpy(joined).to(device), self._table, starts, mode="mean"
                )
                yield range(first, last), head.finish(means)

        return work


def _runs(ids: Sequence[Ids]) -> Iterator[tuple[int, int]]:
    """Neighboring texts of about as many tokens as are read at once."""
    first = tokens = 0
    for number, text in enumerate(ids, start=1):
        tokens += len(text)
        if tokens >= _TABLE_TOKENS or number == len(ids):
            yield first, number
            first, tokens = number, 0
