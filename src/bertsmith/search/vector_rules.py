"""Which vectors can be compared: finite, not zero, of the right width; unit length for cosine."""

from __future__ import annotations

import numpy as np

from bertsmith.errors import ConfigError, InputFileError
from bertsmith.search.store import Matrix, StoreManifest

LARGEST_HALF = 65_504.0


def comparable_rows(vectors: Matrix, manifest: StoreManifest, first: int) -> Matrix:
    """Rows (n, D) as they are stored; `first` is the number of the first one, for errors."""
    _check_width(vectors, manifest)
    norms = np.linalg.norm(vectors.astype(np.float64), axis=1)
    fault = _fault(vectors, norms, manifest)
    if fault is not None:
        row, what = fault
        raise InputFileError(
            f"row {first + row:,}: {what}, so it cannot be compared; remove or correct its text"
        )
    return _scaled(vectors, norms, manifest)


def comparable_queries(vectors: Matrix, manifest: StoreManifest) -> Matrix:
    """Query vectors (q, D) as they are compared."""
    _check_width(vectors, manifest)
    norms = np.linalg.norm(vectors.astype(np.float64), axis=1)
    fault = _fault(vectors, norms, manifest)
    if fault is not None:
        row, what = fault
        raise ConfigError(f"query {row + 1}: {what}, so nothing is similar to it")
    return _scaled(vectors, norms, manifest)


def _check_width(vectors: Matrix, manifest: StoreManifest) -> None:
    if vectors.ndim != 2 or vectors.shape[1] != manifest.dimension:
        raise ConfigError(
            f"the vectors have the shape {vectors.shape}, but the index holds vectors of "
            f"{manifest.dimension} dimensions"
        )


def _fault(vectors: Matrix, norms: Matrix, manifest: StoreManifest) -> tuple[int, str] | None:
    """The first row that cannot be compared, and why."""
    bad = ~np.isfinite(norms)
    if manifest.metric == "cosine":
        bad |= norms == 0
    elif manifest.stored != "float32":
        bad |= np.abs(vectors).max(axis=1, initial=0) > LARGEST_HALF
    rows = np.flatnonzero(bad)
    if not len(rows):
        return None
    row = int(rows[0])
    if not np.isfinite(vectors[row]).all():
        return row, "its vector has values that are not finite"
    if norms[row] == 0:
        return row, "its vector is zero"
    return row, f"its vector has values beyond {LARGEST_HALF:,.0f}, the largest of float16"


def _scaled(vectors: Matrix, norms: Matrix, manifest: StoreManifest) -> Matrix:
    if manifest.metric == "cosine":
        return (vectors / norms[:, None]).astype(np.float32)
    return np.ascontiguousarray(vectors, dtype=np.float32)
