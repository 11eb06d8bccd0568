"""How the tensors of a checkpoint lie in files: whole ones, or the shards of every rank."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from bertsmith.errors import unknown
from bertsmith.training.checkpoints.checkpoint_files import SHARDED, WHOLE, Files, Groups
from bertsmith.training.checkpoints.whole import Whole
from bertsmith.training.execution.ranks import Ranks


class Stored(Protocol):
    """The tensors of a verified checkpoint, read alike whatever their layout."""

    def shapes(self, group: str) -> dict[str, Tensor]:
        """Empty tensors (device meta) with the names, shapes and types of a group."""

    def read(self, group: str, targets: Mapping[str, Tensor]) -> None:
        """Fill tensors of these shapes, whole or sharded, without a meeting of the ranks."""

    def where(self, group: str) -> str:
        """What an error names."""


class Layout(Protocol):
    """Writes tensors from all ranks and opens what was written."""

    @property
    def name(self) -> str:
        """What the manifest calls it."""

    def size(self, groups: Groups, ranks: Ranks) -> int:
        """About how many bytes this rank writes."""

    def write(self, staging: Path, groups: Groups, ranks: Ranks) -> Files:
        """Write this rank's files, without a meeting of the ranks; size and sha256 of each."""

    def open(self, path: Path, files: Files) -> Stored:
        """The tensors of a checkpoint that was verified."""


def layout_for(groups: Groups) -> Layout:
    """The layout that needs no tensor to be put together."""
    sharded = any(hasattr(t, "to_local") for group in groups.values() for t in group.values())
    return _layout(SHARDED if sharded else WHOLE)


def open_stored(path: Path, manifest: Mapping[str, Any]) -> Stored:
    """The tensors of a checkpoint that was verified."""
    return _layout(layout_name(manifest)).open(path, manifest["files"])


def layout_name(manifest: Mapping[str, Any]) -> str:
    """Which layout a checkpoint has; the first ones named none."""
    return str(manifest.get("layout", WHOLE))


def _layout(name: str) -> Layout:
    if name == SHARDED:  # torch.distributed.checkpoint is slow to import and rarely needed
        from bertsmith.training.checkpoints.sharded import Sharded

        return Sharded()
    if name != WHOLE:
        raise unknown("layout of checkpoints", name, [WHOLE, SHARDED])
    return Whole()
