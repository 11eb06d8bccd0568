"""Checked arrays for the metrics: wrong shapes and classes are errors."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertsmith.errors import ConfigError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def check_rows(targets: Sized, predictions: Sized) -> int:
    """How many rows both have; it must be the same number, and not none."""
    if len(targets) != len(predictions):
        raise ConfigError(
            f"{len(targets)} targets, but {len(predictions)} predictions; "
            "score the same rows on both sides"
        )
    if not len(targets):
        raise ConfigError("there are no rows to score; give at least one labeled row")
    return len(targets)


def classes_of(values: ArrayLike, classes: int, what: str) -> Ints:
    """(N,) class numbers, each in 0 .. classes - 1."""
    given: NDArray[Any] = np.asarray(values)
    numbers: Ints = given.astype(np.int64)
    if given.ndim != 1 or not np.array_equal(numbers, given):
        raise ConfigError(f"{what} must be one whole class number per row, not {_shown(given)}")
    wrong = np.flatnonzero((numbers < 0) | (numbers >= classes))
    if wrong.size:
        row = int(wrong[0])
        raise ConfigError(
            f"{what}, row {row}: class {numbers[row]} is none of the {classes} known classes "
            f"(0 to {classes - 1})"
        )
    return numbers


def floats(values: ArrayLike, dimensions: int, what: str) -> Floats:
    """An array of float64 with this number of dimensions."""
    given: Floats = np.asarray(values, dtype=np.float64)
    if given.ndim != dimensions:
        raise ConfigError(f"{what} must have {dimensions} dimension(s), not {_shown(given)}")
    return given


def marks(values: ArrayLike, what: str) -> Bools:
    """(N, C) yes or no, from booleans or from zeros and ones."""
    given: NDArray[Any] = np.asarray(values)
    chosen: Bools = given.astype(np.bool_)
    if given.ndim != 2 or not np.array_equal(chosen, given):
        raise ConfigError(f"{what} must be a table of yes and no (N, C), not {_shown(given)}")
    return chosen


def share(part: ArrayLike, whole: ArrayLike) -> Floats:
    """part / whole, and 0 where the whole is 0."""
    parts, wholes = np.asarray(part, dtype=np.float64), np.asarray(whole, dtype=np.float64)
    result: Floats = np.divide(parts, wholes, out=np.zeros_like(parts), where=wholes != 0)
    return result


def _shown(given: NDArray[Any]) -> str:
    return f"an array of shape {given.shape} and type {given.dtype}"
