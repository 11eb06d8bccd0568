"""The files of one checkpoint: what goes in, and a manifest of hashes by which all is verified."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from bertsmith.errors import BertsmithError, FolderError
from bertsmith.files.atomic_folder import write_file
from bertsmith.files.digest import stream_digest
from bertsmith.files.safe_folder import MEGABYTE, Folder, check_name, parse_json
from bertsmith.files.strict_json import json_values

MANIFEST = "manifest.json"
FORMAT = 1
WHOLE, SHARDED = "whole", "sharded"  # how tensors lie in files
_BLOCK = 4 * MEGABYTE

Groups = Mapping[str, Mapping[str, Tensor]]
Files = dict[str, dict[str, Any]]  # size and sha256 by file name


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What goes into a checkpoint: groups of tensors, JSON by file name, facts for the manifest."""

    tensors: Groups
    documents: Mapping[str, Mapping[str, Any]]
    facts: Mapping[str, Any]


def write_documents(staging: Path, content: Content) -> Files:
    """The JSON files of a checkpoint."""
    return {name: put(staging / name, [_json(value)]) for name, value in content.documents.items()}


def write_manifest(staging: Path, content: Content, *, layout: str, files: Files) -> None:
    """What the checkpoint holds, file by file; written last, it makes the checkpoint one."""
    body = {"format": FORMAT, **content.facts, "layout": layout, "files": files}
    body["sha256"] = hashlib.sha256(_json(body)).hexdigest()
    put(staging / MANIFEST, [_json(body)])


def verify(path: Path, *, rank: int = 0, world: int = 1) -> dict[str, Any]:
    """The manifest of a checkpoint whose every byte is as it was written; names what is not.

    `world` ranks may share the work: each looks at every size and reads its share of the files.
    """
    folder = Folder.at(path)
    manifest = read_manifest(folder)
    for number, (name, expected) in enumerate(sorted(manifest["files"].items())):
        where = path / name
        with folder.open(check_name(name, source=str(path / MANIFEST))) as file:
            size = os.fstat(file.fileno()).st_size
            if size != expected["size"]:
                raise FolderError(
                    f"{where} has {size:,} bytes and should have {expected['size']:,}"
                )
            actual = expected["sha256"] if number % world != rank else stream_digest(file)
        if actual != expected["sha256"]:
            raise FolderError(
                f"{where} is damaged: its sha256 is {actual[:12]}..., not as recorded"
            )
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
            "resume with the version of bertsmith that wrote it"
        )
    return manifest


def read_document(path: Path, name: str) -> dict[str, Any]:
    """A JSON file of a checkpoint."""
    return Folder.at(path).json_object(name)


def is_whole(path: Path) -> bool:
    """Whether the manifest is good and every file has its size; cheap, reads no tensor."""
    try:
        folder = Folder.at(path)
        files = read_manifest(folder)["files"]
        return all((path / name).stat().st_size == files[name]["size"] for name in files)
    except (BertsmithError, OSError):
        return False


def put(path: Path, blocks: Iterable[bytes | memoryview]) -> dict[str, Any]:
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


def _json(value: Mapping[str, Any]) -> bytes:
    """Metrics and losses that are not a number are null."""
    text = json.dumps(json_values(value), indent=1, sort_keys=True, allow_nan=False)
    return f"{text}\n".encode()
