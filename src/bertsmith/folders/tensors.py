"""The weights of a folder: one safetensors file or several under an index, tensor by tensor."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING

from bertsmith.errors import FolderError, TensorMismatchError, UnsafeFileError
from bertsmith.files.safe_folder import Folder, check_name
from bertsmith.folders.header import FLOATS, TensorPlace, read_header

if TYPE_CHECKING:
    import torch
    from torch import Tensor

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
FOREIGN = (".h5", ".msgpack", ".tflite", ".onnx", ".ckpt.index", ".ot")
SHARD_LIMIT = 1_000


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor in an open file."""

    place: TensorPlace
    file: io.FileIO
    where: str


class Weights:
    """The tensors of a folder by their stored names; a context manager that closes the files."""

    def __init__(self, where: str, stored: Mapping[str, Stored], files: ExitStack) -> None:
        self.where = where
        self.stored = dict(stored)
        self._files = files

    def __enter__(self) -> Weights:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._files.close()

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every tensor by stored name."""
        return {name: stored.place.shape for name, stored in self.stored.items()}

    def read(self, name: str, *, dtype: torch.dtype, device: str = "cpu") -> Tensor:
        """One tensor, in memory of its own, finite, as `dtype`."""
        stored = self.stored[name]
        if stored.place.dtype not in FLOATS:
            raise TensorMismatchError(
                f"{stored.where}: {name} is stored as {stored.place.dtype}; weights must be one of "
                f"{', '.join(FLOATS)}"
            )
        tensor = _read_raw(stored, name)
        cast = tensor.to(dtype=dtype)
        if not _finite(cast):  # as it will be used: float64 holds values that float32 cannot
            fault = (
                f"values beyond the range of {str(dtype).removeprefix('torch.')}, as which they "
                "are used"
                if _finite(tensor)
                else "values that are not finite"
            )
            raise TensorMismatchError(
                f"{stored.where}: {name} holds {fault}; the training run broke down: take an "
                "earlier checkpoint"
            )
        return cast.to(device=device)


def open_weights(folder: Folder) -> Weights:
    """The safetensors weights of a folder; never opens a pickle."""
    files = ExitStack()
    try:
        if folder.has(SINGLE):
            stored = _open_file(folder, SINGLE, files, source=None)
        elif folder.has(INDEX):
            stored = _open_shards(folder, files)
        else:
            raise no_weights(folder)
    except BaseException:
        files.close()
        raise
    # Empty tensors hold nothing: they mark heads that transformers does not have (folders/write).
    filled = {name: one for name, one in stored.items() if 0 not in one.place.shape}
    return Weights(str(folder.path), filled, files)


def open_weights_file(folder: Folder, name: str, *, source: str) -> Weights:
    """The tensors of one safetensors file, which the file `source` of the folder names."""
    files = ExitStack()
    try:
        stored = _open_file(folder, name, files, source=source)
    except BaseException:
        files.close()
        raise
    return Weights(str(folder.path / name), stored, files)


def no_weights(folder: Folder) -> FolderError:
    """The error for a folder without safetensors: names what is there and the way out."""
    names = folder.names()
    pickles = [name for name in names if name.endswith(PICKLES) and name != "training_args.bin"]
    if pickles:
        return UnsafeFileError(
            f"{folder.path / pickles[0]} is a pickle, which can run code when it is opened, and "
            f"there is no {SINGLE}; make a safe folder of it first: "
            f"bertsmith convert {folder.root} DST --from-pickle"
        )
    foreign = [name for name in names if name.endswith(FOREIGN)]
    if foreign:
        return FolderError(
            f"{folder.path / foreign[0]} is in a format that is not read, and there is no "
            f"{SINGLE}; save the model with safetensors first"
        )
    return FolderError(f"{folder.path} has no {SINGLE} and no {INDEX}; copy the weights there")


def listed(kind: str, names: Iterable[str], limit: int = 20) -> str:
    """Up to 20 names and how many there are in all, for an error message."""
    every = sorted(names)
    more = f" and {len(every) - limit:,} more" if len(every) > limit else ""
    return f"{len(every):,} {kind}: {', '.join(every[:limit])}{more}"


def _open_file(
    folder: Folder, name: str, files: ExitStack, *, source: str | None
) -> dict[str, Stored]:
    file = files.enter_context(folder.open(name, source=source))
    where = str(folder.path / name)
    return {
        tensor: Stored(place, file, where)
        for tensor, place in read_header(file, where=where).items()
    }


def _open_shards(folder: Folder, files: ExitStack) -> dict[str, Stored]:
    """Every shard of an index, each tensor where the index says and nowhere else."""
    wanted = weight_map(folder, INDEX)
    shards = sorted(set(wanted.values()))
    missing = [shard for shard in shards if not folder.has(shard)]
    if missing:
        raise FolderError(
            f"{folder.path}: {listed('files of ' + INDEX + ' are missing', missing)}; copy them"
        )
    found: dict[str, Stored] = {}
    for shard in shards:
        if not shard.endswith(".safetensors"):
            raise UnsafeFileError(f"{folder.path / shard}, named by {INDEX}, is not safetensors")
        for tensor, stored in _open_file(folder, shard, files, source=INDEX).items():
            if wanted.get(tensor) != shard:
                raise TensorMismatchError(
                    f"{stored.where}: holds {tensor}, which {INDEX} does not place there"
                )
            found[tensor] = stored
    lost = [f"{tensor} (in {wanted[tensor]})" for tensor in wanted if tensor not in found]
    if lost:
        raise TensorMismatchError(
            f"{folder.path}: {listed('tensors of ' + INDEX + ' are not in their file', lost)}"
        )
    return found


def weight_map(folder: Folder, index: str) -> dict[str, str]:
    """Which file holds which tensor, by an index file; plain file names only."""
    found = folder.json_object(index).get("weight_map")
    if not isinstance(found, dict) or not found:
        raise FolderError(f"{folder.path / index}: needs a weight_map of tensor and file names")
    shards = {check_name(shard, source=str(folder.path / index)) for shard in found.values()}
    if len(shards) > SHARD_LIMIT:
        raise FolderError(f"{folder.path / index}: {len(shards):,} files; no BERT has so many")
    return found


def _read_raw(stored: Stored, name: str) -> Tensor:
    """A tensor in its stored type, copied, so that a later change of the file is harmless."""
    import torch

    types = {
        "F64": torch.float64,
        "F32": torch.float32,
        "F16": torch.float16,
        "BF16": torch.bfloat16,
    }
    place = stored.place
    tensor = torch.empty(place.shape, dtype=types[place.dtype])
    if place.length == 0:
        return tensor
    view = tensor.view(-1).view(torch.uint8).numpy().data
    stored.file.seek(place.start)
    filled = 0
    while filled < place.length:
        count = stored.file.readinto(view[filled:])
        if not count:
            raise FolderError(f"{stored.where}: shrank while {name} was read; copy it again")
        filled += count
    return tensor


def _finite(tensor: Tensor) -> bool:
    """Whether all values are finite; the sum decides, only its overflow needs a second look."""
    import torch

    total = tensor.sum(dtype=torch.promote_types(tensor.dtype, torch.float32))
    return bool(torch.isfinite(total)) or bool(torch.isfinite(tensor).all())
