"""Similarities of vectors row by row, and the best documents of each query: exact, ties by number.

The arithmetic is that of sentence-transformers (float32, the same operations in the same order),
so that equal vectors tie here where they tie there.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from bertsmith.errors import TextError, unknown
from bertsmith.metrics.arrays import Floats, Ints

Vectors = NDArray[np.float32]
SIMILARITIES = ("cosine", "dot", "euclidean", "manhattan")
BLOCK = 16_384  # documents that are compared with all queries at once
QUERIES = 512


def paired_similarity(kind: str, first: Vectors, second: Vectors) -> Floats:
    """Each row of `first` with the same row of `second`; larger is more alike: -> (N,)."""
    one, two = _tensors(kind, first, second)
    if kind in ("cosine", "dot"):
        scores = (one * two).sum(dim=1)
    elif kind == "euclidean":
        scores = -torch.sqrt(torch.sum((one - two) ** 2, dim=1))
    else:
        scores = -torch.sum(torch.abs(one - two), dim=1)
    return scores.double().numpy()


def rank_documents(kind: str, queries: Vectors, documents: Vectors, most: int) -> Ints:
    """The numbers of the best documents of each query, best first: (Q, D), (N, D) -> (Q, k).

    Of equally similar documents the one with the lower number comes first.
    """
    asked, known = _tensors(kind, queries, documents)
    most = min(most, len(known))
    parts = [
        _best(kind, asked[start : start + QUERIES], known, most)
        for start in range(0, len(asked), QUERIES)
    ]
    return np.concatenate(parts) if parts else np.zeros((0, most), dtype=np.int64)


def check_vectors(vectors: Vectors, what: str) -> None:
    """Refuse vectors that are not finite, or zero, which have no direction, by row."""
    broken = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if broken.size:
        raise TextError(
            f"{what}, row {int(broken[0]) + 1}: the vector holds values that are not finite; the "
            "weights of the model are broken"
        )
    empty = np.flatnonzero(~vectors.any(axis=1))
    if empty.size:
        raise TextError(
            f"{what}, row {int(empty[0]) + 1}: the vector is zero, so it has no direction to "
            "compare; check the text, or the layers after the pooling"
        )


def _best(kind: str, queries: Tensor, documents: Tensor, most: int) -> Ints:
    """The best documents of some queries, block by block of documents."""
    scores = torch.empty(len(queries), 0)
    numbers = torch.empty(len(queries), 0, dtype=torch.long)
    for start in range(0, len(documents), BLOCK):
        block = documents[start : start + BLOCK]
        new = _matrix(kind, queries, block)
        own = torch.arange(start, start + len(block)).expand(len(queries), -1)
        scores, numbers = torch.cat([scores, new], dim=1), torch.cat([numbers, own], dim=1)
        if scores.shape[1] > most:
            # Stable, and numbers ascend among equal scores, in what was kept as in the new block.
            order = torch.sort(scores, dim=1, descending=True, stable=True).indices[:, :most]
            scores, numbers = scores.gather(1, order), numbers.gather(1, order)
    order = torch.sort(scores, dim=1, descending=True, stable=True).indices
    return numbers.gather(1, order).numpy()


def _matrix(kind: str, queries: Tensor, documents: Tensor) -> Tensor:
    if kind in ("cosine", "dot"):
        return queries @ documents.T
    return -torch.cdist(queries, documents, p=2.0 if kind == "euclidean" else 1.0)


def _tensors(kind: str, first: Vectors, second: Vectors) -> tuple[Tensor, Tensor]:
    if kind not in SIMILARITIES:
        raise unknown("similarity", kind, SIMILARITIES)
    one = torch.from_numpy(np.ascontiguousarray(first, dtype=np.float32))
    two = torch.from_numpy(np.ascontiguousarray(second, dtype=np.float32))
    if kind == "cosine":
        return F.normalize(one, dim=1), F.normalize(two, dim=1)
    return one, two
