"""Memory that a process no longer uses, given back to the system."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache


@cache
def _trim() -> Callable[[int], int] | None:
    """glibc's malloc_trim; other C libraries have none."""
    try:
        found: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
        return found
    except (OSError, AttributeError):
        return None


def give_back() -> bool:
    """Give free pages back; texts and batches of ever other sizes leave many between used ones.

    Whether the C library can do it.
    """
    trim = _trim()
    if trim is None:
        return False
    trim(0)
    return True
