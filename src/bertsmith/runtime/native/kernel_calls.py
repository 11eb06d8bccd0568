"""The kernel's C functions with their argument types, and numpy memory laid out as it wants it."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_POINTER = ctypes.c_void_p
_WHOLE = ctypes.c_int32


def load_kernel(path: Path) -> ctypes.CDLL:
    """Open the library; calls release Python's lock while they run."""
    kernel = ctypes.CDLL(str(path))
    kernel.bertsmith_permitted.argtypes = []
    kernel.bertsmith_permitted.restype = _WHOLE
    kernel.bertsmith_create.argtypes = [_POINTER, ctypes.c_float, *[_POINTER] * 7]
    kernel.bertsmith_create.restype = _POINTER
    kernel.bertsmith_fill.argtypes = [_POINTER, _WHOLE, ctypes.POINTER(_POINTER)]
    kernel.bertsmith_fill.restype = None
    kernel.bertsmith_free.argtypes = [_POINTER]
    kernel.bertsmith_free.restype = None
    kernel.bertsmith_scratch.argtypes = [_POINTER, _WHOLE, _WHOLE]
    kernel.bertsmith_scratch.restype = ctypes.c_size_t
    kernel.bertsmith_encode.argtypes = [*[_POINTER] * 4, _WHOLE, _POINTER, _POINTER]
    kernel.bertsmith_encode.restype = None
    return kernel


def aligned_bytes(size: int) -> NDArray[np.uint8]:
    """Memory that begins on a 64-byte line."""
    memory = np.empty(size + 64, dtype=np.uint8)
    first = -memory.ctypes.data % 64
    return memory[first : first + size]
