"""Random numbers by counting: each is a pure function of a key and a place, in any order."""

from __future__ import annotations

import zlib

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
Floats = NDArray[np.float64]

_WORD = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15  # SplitMix64's step (Steele et al. 2014)
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def key_of(*parts: int | str, seed: int = 0) -> int:
    """One key of 64 bits from several numbers or names; another order is another key."""
    key = seed & _WORD
    for part in parts:
        number = zlib.crc32(part.encode()) + 1 if isinstance(part, str) else part
        mixed = (key + number * _GOLDEN + _GOLDEN) & _WORD
        mixed = ((mixed ^ (mixed >> 30)) * _FIRST) & _WORD
        mixed = ((mixed ^ (mixed >> 27)) * _SECOND) & _WORD
        key = mixed ^ (mixed >> 31)
    return key


def hashes(keys: Words | int, places: NDArray[np.integer]) -> Words:
    """The 64 random bits at each place of a key, or at one place of each key."""
    bits = np.asarray(places).astype(np.uint64)
    bits += np.uint64(1)
    bits *= np.uint64(_GOLDEN)
    bits += np.uint64(keys) if isinstance(keys, int) else keys
    return _mix(bits)


def mixed_with(seed: int, numbers: NDArray[np.integer]) -> Words:
    """64 random bits for each number under a seed."""
    bits = np.asarray(numbers).astype(np.uint64)
    bits += np.uint64(seed * _GOLDEN & _WORD)
    for _ in range(2):
        bits += np.uint64(_GOLDEN)
        bits = _mix(bits)
    return bits


def _mix(bits: Words) -> Words:
    """SplitMix64's finalizer, in place."""
    bits ^= bits >> np.uint64(30)
    bits *= np.uint64(_FIRST)
    bits ^= bits >> np.uint64(27)
    bits *= np.uint64(_SECOND)
    bits ^= bits >> np.uint64(31)
    return bits


def uniforms(keys: Words | int, places: NDArray[np.integer]) -> Floats:
    """Numbers in [0, 1), one a place."""
    return unit(hashes(keys, places))


def unit(bits: Words) -> Floats:
    """64 random bits as a number in [0, 1)."""
    numbers: Floats = (bits >> np.uint64(11)).astype(np.float64)
    numbers *= 2.0**-53
    return numbers


def shuffled(count: int, *key: int | str) -> NDArray[np.int64]:
    """The numbers 0 .. count - 1 in an order that belongs to the key."""
    return np.argsort(hashes(key_of(*key), np.arange(count)), kind="stable")
