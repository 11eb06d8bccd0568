"""Checkpoints of whole tensors: one safetensors file a group, written by the first rank."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from bertsmith.errors import FolderError
from bertsmith.files.safe_folder import Folder
from bertsmith.folders.header import TensorPlace, read_header
from bertsmith.folders.tensor_file import TYPES, byte_view, data_size, file_blocks
from bertsmith.training.checkpoints.checkpoint_files import WHOLE, Files, Groups, put
from bertsmith.training.execution.ranks import Ranks
from bertsmith.training.optimizers.optimizers import sharded_like

SUFFIX = ".safetensors"


class Whole:
    """Every rank holds all tensors, so one writes them."""

    name = WHOLE

    def size(self, groups: Groups, ranks: Ranks) -> int:
        """About how many bytes this rank writes."""
        return sum(map(data_size, groups.values())) if ranks.is_first else 0

    def write(self, staging: Path, groups: Groups, ranks: Ranks) -> Files:
        """Write this rank's files; size and sha256 of each."""
        if not ranks.is_first:
            return {}
        return {
            f"{group}{SUFFIX}": put(staging / f"{group}{SUFFIX}", file_blocks(tensors))
            for group, tensors in groups.items()
        }

    def open(self, path: Path, files: Files) -> StoredWhole:
        """The tensors of a checkpoint that was verified."""
        return StoredWhole(path)


class StoredWhole:
    """One file a group, read with every check of a model folder."""

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
        """Fill the targets, one whole tensor after another; of a sharded one this rank's slice."""
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


def _fill(file: io.FileIO, view: memoryview, where: str) -> None:
    filled = 0
    while filled < len(view):
        count = file.readinto(view[filled:])
        if not count:
            raise FolderError(f"{where} shrank while it was read")
        filled += count
