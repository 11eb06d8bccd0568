"""Checkpoints of sharded tensors: every rank writes its own shards, no rank gathers the model.

Planning, writing and reading are those of torch.distributed.checkpoint, in its safetensors form: no
pickle is written or read. Its own `save` and `load` are not used, since they send pickled objects
between ranks and stop all of them at a barrier where one that failed never comes. Nothing needs to
be agreed on: who holds which rows follows from the number of ranks alone.
"""

from __future__ import annotations

import hashlib
import io
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner, DefaultSavePlanner
from torch.distributed.checkpoint.filesystem import FileSystem
from torch.distributed.checkpoint.hf_storage import (
    HuggingFaceStorageReader,
    HuggingFaceStorageWriter,
)
from torch.distributed.checkpoint.metadata import Metadata, TensorStorageMetadata
from torch.distributed.checkpoint.planner import WriteItem

from bertsmith.errors import FolderError, WriteError
from bertsmith.folders.tensor_file import data_size
from bertsmith.training.checkpoints.checkpoint_files import SHARDED, Files, Groups
from bertsmith.training.checkpoints.tensor_layout import SUFFIX, StoredCheckpoint, TensorLayout
from bertsmith.training.execution.ranks import Ranks


class ShardedLayout(TensorLayout):
    """Every rank writes the rows it holds; what all hold, such as step counters, the first."""

    name = SHARDED

    def size(self, groups: Groups, ranks: Ranks) -> int:
        """About how many bytes this rank writes."""
        return data_size({name: local(tensor) for name, tensor in _own(groups, ranks).items()})

    def write(self, staging: Path, groups: Groups, ranks: Ranks) -> Files:
        """Write this rank's file; its size and sha256."""
        if not staging.is_dir():
            raise WriteError(
                f"rank {ranks.rank} does not see {staging}, which the first rank has made; the "
                "run's folder must lie on a file system that all machines share"
            )
        writer = HuggingFaceStorageWriter(str(staging), save_distributed=True)
        files = _SummedFiles()
        writer.fs = files
        writer.set_up_storage_writer(ranks.is_first)
        planner = _Packing(flatten_state_dict=False, flatten_sharded_tensors=False)
        planner.set_up_planner(dict(_own(groups, ranks)), is_coordinator=ranks.is_first)
        plan = writer.prepare_local_plan(planner.create_local_plan())
        # The writer numbers its files by the place of a plan among those of all ranks.
        plan = writer.prepare_global_plan([plan] * ranks.world)[ranks.rank]
        writer.write_data(planner.finish_plan(plan), planner).wait()
        return files.sums

    def open(self, path: Path, files: Files) -> StoredShards:
        """The tensors of a checkpoint that was verified."""
        return StoredShards(path, sorted(name for name in files if name.endswith(SUFFIX)))


class StoredShards(StoredCheckpoint):
    """Shards of any number of ranks, read by any number."""

    def __init__(self, path: Path, names: list[str]) -> None:
        super().__init__(path)
        self._reader = HuggingFaceStorageReader(str(path))
        self._reader.fs = _NamedFiles(names)
        self._metadata = self._reader.read_metadata()
        _check_cover(self._metadata, path)

    def shapes(self, group: str) -> dict[str, Tensor]:
        """Empty tensors (device meta) with the names, shapes and types of a group."""
        return {
            name.removeprefix(f"{group}:"): torch.empty(
                entry.size, dtype=entry.properties.dtype, device="meta"
            )
            for name, entry in _tensors(self._metadata).items()
            if name.startswith(f"{group}:")
        }

    def read(self, group: str, targets: Mapping[str, Tensor]) -> None:
        """Fill the targets, each with the rows that this rank holds of it."""
        planner = DefaultLoadPlanner(flatten_state_dict=False, flatten_sharded_tensors=False)
        wanted = {f"{group}:{name}": target for name, target in targets.items()}
        planner.set_up_planner(wanted, self._metadata, is_coordinator=True)
        self._reader.set_up_storage_reader(self._metadata, is_coordinator=True)
        plan = self._reader.prepare_local_plan(planner.create_local_plan())
        self._reader.read_data(planner.finish_plan(plan), planner).wait()

    def where(self, group: str) -> str:
        """What an error names."""
        return f"{self._path} ({group})"


def local(tensor: Tensor) -> Tensor:
    """What this rank holds of a tensor."""
    local: Tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return local


def _own(groups: Groups, ranks: Ranks) -> dict[str, Tensor]:
    """What this rank writes, by group and name.

    A tensor with fewer rows than there are ranks leaves some of them without any.
    """
    return {
        f"{group}:{name}": tensor
        for group, tensors in groups.items()
        for name, tensor in tensors.items()
        if ranks.is_first or (hasattr(tensor, "to_local") and local(tensor).numel())
    }


def _tensors(metadata: Metadata) -> dict[str, TensorStorageMetadata]:
    every = metadata.state_dict_metadata.items()
    return {name: entry for name, entry in every if isinstance(entry, TensorStorageMetadata)}


def _check_cover(metadata: Metadata, path: Path) -> None:
    """The reader leaves rows that no shard holds as they are: refuse a tensor that has some."""
    for name, entry in _tensors(metadata).items():
        stored = sum(math.prod(chunk.sizes) for chunk in entry.chunks)
        if stored != math.prod(entry.size):
            raise FolderError(
                f"{path}: {name} has {math.prod(entry.size):,} values and the shards hold "
                f"{stored:,}; a shard is missing or doubled"
            )


class _Packing(DefaultSavePlanner):
    """Gives the writer what it takes: tensors without gaps."""

    def transform_object(self, write_item: WriteItem, object: Any) -> Any:
        return object.contiguous()


class _NamedFiles(FileSystem):
    """Shows the reader the files of the manifest and nothing else that may lie in the folder."""

    def __init__(self, names: list[str]) -> None:
        self._names = names

    def ls(self, path: str | os.PathLike[str]) -> list[str]:
        return [str(Path(path) / name) for name in self._names]


class _SummedFiles(FileSystem):
    """Makes new files only, and keeps the size and sha256 of what passes through memory."""

    def __init__(self) -> None:
        self.sums: Files = {}

    @contextmanager
    def create_stream(self, path: str | os.PathLike[str], mode: str) -> Iterator[io.IOBase]:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        flags |= getattr(os, "O_BINARY", 0)
        stream = _Summed(io.FileIO(os.open(path, flags, 0o666), "r+b"))
        try:
            yield stream
        finally:
            stream.close()
        self.sums[Path(path).name] = {"size": stream.size, "sha256": stream.digest.hexdigest()}


class _Summed(io.BufferedWriter):
    """A file that counts and hashes what is written, and is on the disk once it is closed.

    The writer calls fsync before the last bytes have left the buffer, so closing does it again.
    """

    def __init__(self, raw: io.FileIO) -> None:
        super().__init__(raw)
        self.size = 0
        self.digest = hashlib.sha256()

    def write(self, block: Any) -> int:
        self.digest.update(block)
        self.size += len(block)
        return super().write(block)

    def close(self) -> None:
        if not self.closed:
            self.flush()
            os.fsync(self.fileno())
        super().close()
