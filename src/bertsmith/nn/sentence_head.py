"""From rows to vectors: pooling, dense layers, normalization; and how two vectors are compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from bertsmith.errors import ConfigError, unknown
from bertsmith.nn.feed_forward import find_activation
from bertsmith.nn.pooling import pool

Vectors = NDArray[np.float32]


class DenseWeights(Protocol):
    """A linear layer after pooling, as settings hold it."""

    @property
    def activation(self) -> str:
        """The name of its activation."""

    @property
    def weight(self) -> Tensor | None:
        """(W, D), None if only settings were read."""

    @property
    def bias(self) -> Tensor | None:
        """(W,), if it has one."""

    @property
    def residual(self) -> bool:
        """Whether the input is added to the output."""

    @property
    def residual_weight(self) -> Tensor | None:
        """(W, D), what the input is multiplied by first, where widths differ."""


@dataclass(frozen=True, slots=True)
class SentenceHead:
    """Pools the rows of each text, applies dense layers, normalizes."""

    pooling: Sequence[str]
    dense: Sequence[DenseWeights] = ()
    normalize: bool = False

    def __call__(self, rows: Tensor, lengths: Sequence[int], skipped: int = 0) -> Tensor:
        """(T, D) -> (B, W); the first `skipped` rows of each text stay out of the pooling."""
        if skipped:
            rows, lengths = _without_prompt(rows, lengths, skipped)
        parts = [pool(kind, rows, lengths) for kind in self.pooling]
        return self.finish(torch.cat(parts, dim=1) if len(parts) > 1 else parts[0])

    def finish(self, vectors: Tensor) -> Tensor:
        """What follows the pooling: (B, D) -> (B, W)."""
        for layer in self.dense:
            vectors = _dense(layer, vectors)
        return F.normalize(vectors, dim=1) if self.normalize else vectors


def mix_layers(layers: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    """The weighted mean of the hidden states of all layers: N + 1 of (T, D) -> (T, D)."""
    if len(layers) != len(weights):
        raise ConfigError(
            f"the mix has {len(weights)} weights; this encoder has {len(layers)} layers of hidden "
            "states, the embeddings among them"
        )
    total = sum(weights)
    parts = [layer * (w / total) for layer, w in zip(layers, weights, strict=True) if w]
    return torch.stack(parts).sum(dim=0) if len(parts) > 1 else parts[0]


def _without_prompt(
    rows: Tensor, lengths: Sequence[int], skipped: int
) -> tuple[Tensor, Sequence[int]]:
    """Leave out the prompt's rows, but never a text's last row: something must be pooled."""
    sizes = torch.tensor(lengths)
    gone = (sizes - 1).clamp(max=skipped)
    starts = sizes.cumsum(0) - sizes
    places = torch.arange(len(rows)) - starts.repeat_interleave(sizes)
    kept = places >= gone.repeat_interleave(sizes)
    return rows[kept.to(rows.device)], (sizes - gone).tolist()


def _dense(layer: DenseWeights, vectors: Tensor) -> Tensor:
    if layer.weight is None:
        raise ValueError("the dense layer was read without its weights")
    weight = layer.weight.to(vectors.device, vectors.dtype)
    bias = None if layer.bias is None else layer.bias.to(vectors.device, vectors.dtype)
    result = find_activation(layer.activation)(F.linear(vectors, weight, bias))
    if not layer.residual:
        return result
    if layer.residual_weight is None:
        return result + vectors
    through = layer.residual_weight.to(vectors.device, vectors.dtype)
    return result + F.linear(vectors, through)


def similarity(kind: str, first: Vectors, second: Vectors) -> Vectors:
    """Each of `first` with each of `second`, larger is more alike: (n, D), (m, D) -> (n, m)."""
    if kind not in _SIMILARITIES:
        raise unknown("similarity", kind, _SIMILARITIES)
    return _SIMILARITIES[kind](
        np.asarray(first, dtype=np.float32), np.asarray(second, dtype=np.float32)
    )


def _cosine(first: Vectors, second: Vectors) -> Vectors:
    return _unit(first) @ _unit(second).T


def _dot(first: Vectors, second: Vectors) -> Vectors:
    return first @ second.T


def _euclidean(first: Vectors, second: Vectors) -> Vectors:
    return -torch.cdist(torch.from_numpy(first), torch.from_numpy(second)).numpy()


def _manhattan(first: Vectors, second: Vectors) -> Vectors:
    return -torch.cdist(torch.from_numpy(first), torch.from_numpy(second), p=1.0).numpy()


def _unit(vectors: Vectors) -> Vectors:
    """Rows of length one; a zero vector stays zero."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Vectors = vectors / np.maximum(norms, np.float32(1e-12))
    return unit


_SIMILARITIES: dict[str, Callable[[Vectors, Vectors], Vectors]] = {
    "cosine": _cosine,
    "dot": _dot,
    "euclidean": _euclidean,
    "manhattan": _manhattan,
}
