"""Vectors as points of a plane: PCA, t-SNE or UMAP, the same for the same seed."""

from __future__ import annotations

import importlib
import warnings
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from bertsmith.errors import ConfigError, MissingExtraError, unknown
from bertsmith.sentences.transform.moments import moments_of
from bertsmith.sentences.transform.whitening import principal

Method = Literal["pca", "tsne", "umap"]
METHODS: tuple[Method, ...] = get_args(Method)
FEWEST = 3  # points of a map
_DIMENSIONS = 50  # t-SNE and UMAP see the first principal components: faster, with less noise
_PERPLEXITY = 30.0
_NEIGHBORS = 15
_START = 1e-4  # deviation of t-SNE's first layout

Plane = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Projection:
    """Points (n, 2) of a method; `explained` are PCA's shares of the variance, else None."""

    method: Method
    points: Plane
    explained: tuple[float, float] | None = None


def checked_method(name: str) -> Method:
    """The method of a name; one that does not exist or is not installed is refused."""
    for method in METHODS:
        if method == name:
            if method == "umap":
                _umap()
            return method
    raise unknown("method", name, METHODS)


def project(vectors: NDArray[np.float32], method: Method, *, seed: int = 0) -> Projection:
    """(n, D) -> (n, 2). One thread computes t-SNE and UMAP, so that sums have one order."""
    if len(vectors) < FEWEST:
        raise ConfigError(f"a map needs at least {FEWEST} points, and there are {len(vectors)}")
    components, explained = _components(vectors, 2 if method == "pca" else _DIMENSIONS)
    if method == "pca":
        return Projection("pca", components, explained)
    start = components[:, :2]
    if method == "tsne":
        return Projection("tsne", _tsne(components, start * _START / start[:, 0].std(), seed))
    return Projection("umap", _by_umap(components, seed))


def _components(vectors: NDArray[np.float32], count: int) -> tuple[Plane, tuple[float, float]]:
    """The first principal components (n, k), at least 2, and the shares of the first two."""
    found = principal(moments_of([vectors], vectors.shape[1]), what="a map")
    directions = found.directions[:, :count]
    components = (vectors.astype(np.float64) - found.mean) @ directions
    if components.shape[1] == 1:  # all points are on a line
        components = np.column_stack([components, np.zeros(len(components))])
    shares = [*(found.variances[:2] / found.variances.sum()).tolist(), 0.0]
    return components, (shares[0], shares[1])


def _tsne(components: Plane, start: Plane, seed: int) -> Plane:
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    count = len(components)
    with threadpool_limits(1):
        points = TSNE(
            perplexity=min(_PERPLEXITY, (count - 1) / 3),
            init=start.astype(np.float32),
            random_state=seed,
            n_jobs=1,
        ).fit_transform(components)
    return np.asarray(points, dtype=np.float64)


def _by_umap(components: Plane, seed: int) -> Plane:
    count = len(components)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about disconnected points and one thread
        points = (
            _umap()
            .UMAP(
                n_neighbors=min(_NEIGHBORS, count - 1),
                # The spectral layout needs more points than it has dimensions.
                init="spectral" if count > 4 else "random",
                random_state=seed,
                n_jobs=1,
            )
            .fit_transform(components)
        )
    return np.asarray(points, dtype=np.float64)


def _umap() -> Any:
    try:
        return importlib.import_module("umap")
    except ImportError:
        raise MissingExtraError("umap-learn", "map") from None
