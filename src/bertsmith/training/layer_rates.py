"""Lower learning rates for lower blocks, which hold what pre-training knows of any text."""

from __future__ import annotations

import re
from collections.abc import Iterable

_BLOCK = re.compile(r"\bencoder\.blocks\.(\d+)\.")
_EMBEDDINGS = re.compile(r"\bencoder\.embeddings\.")


def depths(names: Iterable[str]) -> dict[str, int]:
    """How far below the head each parameter stands: 0 for heads, 1 for the top block.

    Blocks that share their weights count as the one that the name gives, the lowest.
    """
    listed = list(names)
    found = [int(match[1]) for name in listed if (match := _BLOCK.search(name))]
    blocks = max(found, default=-1) + 1
    depth = {}
    for name in listed:
        if match := _BLOCK.search(name):
            depth[name] = blocks - int(match[1])
        else:
            depth[name] = blocks + 1 if _EMBEDDINGS.search(name) else 0
    return depth
