"""How the tensors of a checkpoint are stored: one safetensors file per group, or shards.

Whole tensors are written by the first rank; shards by every rank, see `sharded`.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bertsmith.errors import FolderError, unknown
from bertsmith.files.safe_folder import Folder
from bertsmith.folders.header import TensorPlace, read_header
from bertsmith.folders.tensor_file import TYPES, byte_view, data_size, file_blocks
from bertsmith.training.checkpoints.checkpoint_files import SHARDED, WHOLE, Files, Groups, put
from bertsmith.training.execution.ranks import Ranks
from bertsmith.training.optimizers.optimizers import sharded_like

SUFFIX = ".safetensors"


class StoredCheckpoint:
    """The tensors of a verified checkpoint, whole: one file per group."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def shapes(self, group: str) -> dict[str, Tensor]:
        """Empty tensors (device meta) with the names, shapes and types of a group."""
        with Folder.at(self._path).open(f"{group}{SUFFIX}") as file:
            places = read_header(file, where=self.where(group))
        return {
            name: torch.empty(place.shape, dtype=self._type(group, name, place), device="meta")
            for name, place in places.items()
        }

    def read(self, group: str, targets: Mapping[str, Tensor]) -> None:
        """Fill tensors of these shapes, whole or sharded, without a collective call."""
        where = self.where(group)
        with Folder.at(self._path).open(f"{group}{SUFFIX}") as file:
            places = read_header(file, where=where)
            for name, target in targets.items():
                place = places[name]
                whole = torch.empty(place.shape, dtype=self._type(group, name, place))
                file.seek(place.start)
                _fill(file, byte_view(whole), where)
                is_shard = hasattr(target, "device_mesh")
                target.copy_(sharded_like(whole, target) if is_shard else whole)

    def where(self, group: str) -> str:
        """What an error names."""
        return str(self._path / f"{group}{SUFFIX}")

    def _type(self, group: str, name: str, place: TensorPlace) -> torch.dtype:
        if place.dtype not in TYPES:
            raise FolderError(
                f"{self.where(group)}: {name} has the type {place.dtype}, never written here"
            )
        return TYPES[place.dtype]


class TensorLayout:
    """Whole tensors, which every rank holds: the first rank writes them."""

    name = WHOLE  # in the manifest

    def size(self, groups: Groups, ranks: Ranks) -> int:
        """About how many bytes this rank writes."""
        return sum(map(data_size, groups.values())) if ranks.is_first else 0

    def write(self, staging: Path, groups: Groups, ranks: Ranks) -> Files:
        """Write this rank's files, without a collective call; size and sha256 of each."""
        if not ranks.is_first:
            return {}
        return {
            f"{group}{SUFFIX}": put(staging / f"{group}{SUFFIX}", file_blocks(tensors))
            for group, tensors in groups.items()
        }

    def open(self, path: Path, files: Files) -> StoredCheckpoint:
        """The tensors of a checkpoint that was verified."""
        return StoredCheckpoint(path)


def layout_for(groups: Groups) -> TensorLayout:
    """The layout that needs no tensor to be gathered."""
    sharded = any(hasattr(t, "to_local") for group in groups.values() for t in group.values())
    return _layout(SHARDED if sharded else WHOLE)


def open_stored(path: Path, manifest: Mapping[str, Any]) -> StoredCheckpoint:
    """The tensors of a checkpoint that was verified."""
    return _layout(layout_name(manifest)).open(path, manifest["files"])


def layout_name(manifest: Mapping[str, Any]) -> str:
    """Which layout a checkpoint has; the first ones named none."""
    return str(manifest.get("layout", WHOLE))


def _layout(name: str) -> TensorLayout:
    if name == SHARDED:  # torch.distributed.checkpoint is slow to import and rarely needed
        from bertsmith.training.checkpoints.sharded import ShardedLayout

        return ShardedLayout()
    if name != WHOLE:
        raise unknown("layout of checkpoints", name, [WHOLE, SHARDED])
    return TensorLayout()


def _fill(file: io.FileIO, view: memoryview, where: str) -> None:
    filled = 0
    while filled < len(view):
        count = file.readinto(view[filled:])
        if not count:
            raise FolderError(f"{where} shrank while it was read")
        filled += count
