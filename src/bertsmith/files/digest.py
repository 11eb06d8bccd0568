"""SHA-256 digests of files, of the start of files, and of JSON values."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bertsmith.config import Settings
from bertsmith.errors import FolderError

BLOCK = 1 << 20


def stream_digest(file: io.BufferedReader | io.FileIO) -> str:
    """The sha256 of all that is left to read of an open binary file."""
    return hashlib.file_digest(file, "sha256").hexdigest()


def file_digest(path: Path) -> str:
    """The sha256 of a file."""
    try:
        with path.open("rb") as file:
            return stream_digest(file)
    except OSError as fault:
        raise FolderError(f"cannot read {path}: {fault.strerror or fault}") from fault


def prefix_hash(path: Path, size: int) -> Any | None:
    """The running hash of the first `size` bytes of a file; None if it is shorter."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while size > 0:
            data = file.read(min(size, BLOCK))
            if not data:
                return None
            digest.update(data)
            size -= len(data)
    return digest


def file_marks(paths: Iterable[Path]) -> list[str]:
    """Name, size and time of each file: quick to take, and another one after every change."""
    return [f"{path.name}:{(s := path.stat()).st_size}:{s.st_mtime_ns}" for path in paths]


def json_digest(value: Any) -> str:
    """The sha256 of a JSON value, whatever the order of its keys; other values by their str."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


def fingerprint(settings: Settings) -> str:
    """The sha256 of settings, equal for equal settings however they were written."""
    return json_digest(settings.model_dump(mode="json", exclude_none=True))
