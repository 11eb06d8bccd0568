"""Keeps freed memory in the process: a step's large tensors then cost no page faults."""

from __future__ import annotations

import ctypes
import logging
import platform
import sys

log = logging.getLogger(__name__)

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4  # from malloc.h of glibc
_NEVER = 2**31 - 1
_PAD = 64 << 20


def keep_freed_memory() -> bool:
    """Have glibc hand out large blocks again instead of returning them to the system.

    A training step allocates the same tensors each time. By default each one above 32 MB is mapped
    anew and faulted in page by page: 17 % of a tiny step in one profile. Some systems fault anyway.
    Returns whether it was done.
    """
    if sys.platform != "linux" or platform.libc_ver()[0] != "glibc":
        return False
    libc = ctypes.CDLL(None)
    wanted = ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, _NEVER), (_TOP_PAD, _PAD))
    done = all(libc.mallopt(option, value) == 1 for option, value in wanted)
    if not done:
        log.info("the memory allocator took no advice; training is somewhat slower")
    return done
