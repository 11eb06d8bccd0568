"""Pooled vectors of every layer, from one pass of the encoder, kept in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from numpy.typing import NDArray

from bertsmith.models.sentence_spec import PoolingKind
from bertsmith.nn.encoder import Want
from bertsmith.nn.sentence_head import SentenceHead
from bertsmith.runtime.embedder import Embedder
from bertsmith.runtime.engines.batches import pack_rows
from bertsmith.runtime.host import Host

_BUDGET = 2048  # tokens per batch


@dataclass(frozen=True, slots=True)
class LayerVectors:
    """Vectors (N + 1, poolings, n, D) of n texts; layer 0 are the embeddings."""

    values: NDArray[np.float32]
    poolings: tuple[PoolingKind, ...]

    @property
    def layers(self) -> int:
        """N, the layers above the embeddings."""
        return len(self.values) - 1

    def of(self, layers: Sequence[int], pooling: PoolingKind) -> NDArray[np.float32]:
        """The mean of the pooled vectors of these layers: (n, D).

        For poolings that are linear it is what pooling the mean of the layers gives.
        """
        place = self.poolings.index(pooling)
        if len(layers) == 1:
            return np.asarray(self.values[layers[0], place])
        mean: NDArray[np.float32] = np.mean([self.values[one, place] for one in layers], axis=0)
        return mean


@contextmanager
def layer_vectors(
    host: Host,
    embedder: Embedder,
    texts: Sequence[str],
    poolings: Sequence[PoolingKind],
    *,
    dropout: bool = False,
    progress: Callable[[int], None] = lambda done: None,
) -> Iterator[LayerVectors]:
    """Encode texts once and keep what every layer gives, on disk while the context lasts.

    With `dropout` the encoder drops units as in training: each call gives other vectors.
    """
    ids, skipped = embedder.token_ids(texts)
    spec = host.model.spec
    heads = [SentenceHead((kind,)) for kind in poolings]
    with TemporaryDirectory(prefix="bertsmith-") as folder:
        values = np.lib.format.open_memmap(
            Path(folder) / "layers.npy",
            mode="w+",
            dtype=np.float32,
            shape=(spec.layers + 1, len(poolings), len(texts), spec.hidden),
        )
        done = 0
        with _mode(host, dropout=dropout), torch.inference_mode():
            for batch in pack_rows(ids, budget=_BUDGET):
                with host.torch_turn():
                    layers = host.model(
                        batch.inputs().to(host.device), want=Want(layers=True)
                    ).layers
                for number, rows in enumerate(layers):
                    for place, head in enumerate(heads):
                        pooled = head(rows.float(), batch.lengths, skipped)
                        values[number, place, list(batch.texts)] = pooled.cpu().numpy()
                done += len(batch.texts)
                progress(done)
        yield LayerVectors(values, tuple(poolings))
        del values


@contextmanager
def _mode(host: Host, *, dropout: bool) -> Iterator[None]:
    host.model.train(dropout)
    try:
        yield
    finally:
        host.model.eval()
