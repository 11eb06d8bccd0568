"""Groups of processes, and whether they have ended."""

from __future__ import annotations

import os
import time


def group_ends(group: int) -> bool:
    """Whether no process of a group is left, after a while."""
    for _ in range(100):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False
