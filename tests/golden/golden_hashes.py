"""Hashes of what commands leave: tensors, arrays, files, printed text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from golden_records import canonical

RENAMED = {"cosine.": "likeness."}  # tensors: the name now, and at the commit of the hashes
RENAMED_FILES: dict[str, str] = {}  # the name now, and at the commit of the hashes


class GoldenError(Exception):
    """A command of a golden run that failed, with what it said."""


def array_hash(path: Path) -> str:
    """sha256 over the numbers of an .npy file of fp32."""
    found = np.load(path)
    if found.dtype != np.float32 or not found.size:
        raise GoldenError(f"{path.name} holds {found.dtype} of shape {found.shape}")
    return hashlib.sha256(np.ascontiguousarray(found).tobytes()).hexdigest()


def tensors_hash(folder: Path) -> str:
    """sha256 over name, dtype, shape and bytes of every tensor in a model's folder, sorted.

    The folder's own weight files and those of a model inside it (ELECTRA's generator), but not
    checkpoints.
    """
    files = [*folder.glob("*.safetensors"), *folder.glob("generator/*.safetensors")]
    if not files:
        raise GoldenError(f"no weights came out in {folder.name}")
    found = [
        (_as_stored(name), *rest) for file in files for name, *rest in _tensors(file.read_bytes())
    ]
    total = hashlib.sha256()
    for name, dtype, shape, content in sorted(found):
        total.update(f"{name} {dtype} {shape} {len(content)}\n".encode())
        total.update(content)
    return total.hexdigest()


def files_hash(folder: Path, patterns: Sequence[str], work: Path) -> str:
    """sha256 over names and contents of the files that match any of these patterns.

    Of weights their tensors count, of JSON its values, of other files their bytes; the tensors of a
    checkpoint count without their names.
    """
    found = {path for pattern in patterns for path in folder.glob(pattern) if path.is_file()}
    found = {path for path in found if path.name not in ("lock", "hashes.json")}
    if not found:
        raise GoldenError(f"nothing called {' or '.join(patterns)} came out in {folder.name}")
    lines = []
    for path in found:
        name = path.relative_to(folder).as_posix()
        content = hashlib.sha256(_content(path, name, work)).hexdigest()
        lines.append(f"{RENAMED_FILES.get(name, name)} {content}")
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


def output_hash(text: str, work: Path) -> str:
    """sha256 over the values of printed JSON, or over printed text."""
    if not text.strip():
        raise GoldenError("nothing was printed")
    return hashlib.sha256("\n".join(canonical(text, "output", work)).encode()).hexdigest()


def _content(path: Path, name: str, work: Path) -> bytes:
    if path.suffix == ".safetensors":
        found = _tensors(path.read_bytes())
        if name.startswith("checkpoints/"):
            found = [("", *rest) for _, *rest in found]
        stored = sorted((_as_stored(tensor), *rest) for tensor, *rest in found)
        return b"".join(f"{n} {dtype} {shape}\n".encode() + raw for n, dtype, shape, raw in stored)
    if path.suffix in (".json", ".jsonl"):
        return "\n".join(canonical(path.read_text(encoding="utf-8"), name, work)).encode()
    return path.read_bytes()


def _as_stored(name: str) -> str:
    """The name that a tensor had when the hashes were made."""
    for now, before in RENAMED.items():
        if name.startswith(now):
            return before + name.removeprefix(now)
    return name


def _tensors(raw: bytes) -> list[tuple[str, str, str, bytes]]:
    """What a safetensors file holds: a length, a header in JSON, then bytes."""
    begin = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:begin])
    header.pop("__metadata__", None)
    found = []
    for name, about in header.items():
        start, end = about["data_offsets"]
        if start == end:  # an empty tensor marks a head that transformers does not have
            continue
        found.append((name, about["dtype"], str(about["shape"]), raw[begin + start : begin + end]))
    return found
