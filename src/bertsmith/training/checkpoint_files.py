"""One checkpoint on disk: tensors, JSON and a manifest of hashes, all or nothing."""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bertsmith.errors import BertsmithError, ConfigError, FolderError
from bertsmith.folders.header import read_header
from bertsmith.folders.safe import MEGABYTE, Folder, check_name, parse_json
from bertsmith.folders.staging import staged_folder, write_file

MANIFEST = "manifest.json"
FORMAT = 1
_BLOCK = 4 * MEGABYTE
_OTHER = 1 << 16  # about what headers, state and manifest take
_STORED = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
_TYPES = {name: dtype for dtype, name in _STORED.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What goes into a checkpoint: tensors and JSON by file name, facts for the manifest."""

    tensors: Mapping[str, Mapping[str, Tensor]]
    documents: Mapping[str, Mapping[str, Any]]
    facts: Mapping[str, Any]


def write(target: Path, content: Content) -> None:
    """Put a checkpoint at `target`: staged beside it, synced, manifest last, renamed, synced."""
    size = sum(t.numel() * t.element_size() for f in content.tensors.values() for t in f.values())
    with staged_folder(target, needed=size + _OTHER, overwrite=False) as staging:
        files = {}
        for name, tensors in content.tensors.items():
            files[name] = _put(staging / name, _tensor_blocks(tensors))
        for name, document in content.documents.items():
            files[name] = _put(staging / name, [_json(document)])
        body = {"format": FORMAT, **content.facts, "files": files}
        body["sha256"] = hashlib.sha256(_json(body)).hexdigest()
        _put(staging / MANIFEST, [_json(body)])


def verify(path: Path) -> dict[str, Any]:
    """The manifest of a checkpoint whose every byte is as it was written; names what is not."""
    folder = Folder.at(path)
    manifest = read_manifest(folder)
    for name, expected in manifest["files"].items():
        where = path / name
        with folder.open(check_name(name, source=str(path / MANIFEST))) as file:
            size = os.fstat(file.fileno()).st_size
            if size != expected["size"]:
                raise FolderError(
                    f"{where} has {size:,} bytes and should have {expected['size']:,}"
                )
            found = _hash(file)
        if found != expected["sha256"]:
            raise FolderError(f"{where} is damaged: its sha256 is {found[:12]}..., not as recorded")
    return manifest


def read_manifest(folder: Folder) -> dict[str, Any]:
    """The manifest, if it is as it was written."""
    where = str(folder.path / MANIFEST)
    raw = folder.read(MANIFEST, limit=8 * MEGABYTE)
    manifest = parse_json(raw, where=where)
    if not isinstance(manifest, dict) or _json(manifest) != raw:
        raise FolderError(f"{where} is damaged: it is not as it was written")
    body = {key: value for key, value in manifest.items() if key != "sha256"}
    if hashlib.sha256(_json(body)).hexdigest() != manifest.get("sha256"):
        raise FolderError(f"{where} is damaged: it does not match its own sha256")
    if manifest.get("format") != FORMAT:
        raise FolderError(
            f"{where} has format {manifest.get('format')}, this version reads {FORMAT}; "
            "go on with the version of bertsmith that wrote it"
        )
    return manifest


def read_document(path: Path, name: str) -> dict[str, Any]:
    """A JSON file of a checkpoint."""
    return Folder.at(path).json_object(name)


def read_tensors(path: Path, name: str) -> dict[str, Tensor]:
    """All tensors of a file of a checkpoint, in memory of their own."""
    where = str(path / name)
    found: dict[str, Tensor] = {}
    with Folder.at(path).open(name) as file:
        for tensor, place in read_header(file, where=where).items():
            if place.dtype not in _TYPES:
                raise FolderError(
                    f"{where}: {tensor} has the type {place.dtype}, never written here"
                )
            empty = torch.empty(place.shape, dtype=_TYPES[place.dtype])
            file.seek(place.start)
            _fill(file, _view(empty), where)
            found[tensor] = empty
    return found


def is_whole(path: Path) -> bool:
    """Whether the manifest is good and every file has its size; cheap, reads no tensor."""
    try:
        folder = Folder.at(path)
        files = read_manifest(folder)["files"]
        return all((path / name).stat().st_size == files[name]["size"] for name in files)
    except (BertsmithError, OSError):
        return False


def _put(path: Path, blocks: Iterable[bytes | memoryview]) -> dict[str, Any]:
    """Write a new file; its size and sha256, taken from memory and not from the disk."""
    digest, size = hashlib.sha256(), 0

    def passing() -> Iterator[bytes | memoryview]:
        nonlocal size
        for block in blocks:
            digest.update(block)
            size += len(block)
            yield block

    write_file(path, *passing())
    return {"size": size, "sha256": digest.hexdigest()}


def _tensor_blocks(tensors: Mapping[str, Tensor]) -> Iterator[bytes | memoryview]:
    """A safetensors file, widest types first so that all are aligned."""
    order = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    header: dict[str, Any] = {}
    place = 0
    for name in order:
        tensor = tensors[name]
        end = place + tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": _STORED[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [place, end],
        }
        place = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    yield len(text).to_bytes(8, "little") + text
    for name in order:
        if tensors[name].numel():
            yield _view(tensors[name].detach().cpu().contiguous())


def _view(tensor: Tensor) -> memoryview:
    if sys.byteorder != "little":
        raise ConfigError("checkpoints are stored in little-endian order; this machine is not")
    return tensor.view(-1).view(torch.uint8).numpy().data


def _fill(file: io.FileIO, view: memoryview, where: str) -> None:
    filled = 0
    while filled < len(view):
        count = file.readinto(view[filled:])
        if not count:
            raise FolderError(f"{where} shrank while it was read")
        filled += count


def _json(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


def _hash(file: io.FileIO) -> str:
    digest = hashlib.sha256()
    while block := file.read(_BLOCK):
        digest.update(block)
    return digest.hexdigest()
