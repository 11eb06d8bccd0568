"""What tells one fine-tuned folder from another: the hash of all that decides its answers."""

from __future__ import annotations

import hashlib
from pathlib import Path

from bertsmith.errors import FolderError
from bertsmith.folders.names import resolve
from bertsmith.folders.read import CONFIG, TOKENIZER_FILES
from bertsmith.folders.task_files import HEAD
from bertsmith.folders.write import OWN

DECIDING = (CONFIG, OWN, HEAD, "model.safetensors", *TOKENIZER_FILES)


def model_key(name: str | Path) -> str:
    """The sha256 over names and bytes of a folder's files."""
    folder = resolve(name)
    total = hashlib.sha256()
    try:
        for file in sorted(DECIDING):
            if (folder / file).is_file():
                with (folder / file).open("rb") as stream:
                    total.update(f"{file}\0".encode())
                    total.update(hashlib.file_digest(stream, "sha256").digest())
    except OSError as fault:
        raise FolderError(f"cannot read {folder}: {fault.strerror or fault}") from fault
    return total.hexdigest()
