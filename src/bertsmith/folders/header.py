"""The header of a safetensors file, checked in full before one byte of a tensor is read."""

from __future__ import annotations

import io
import math
import os
import struct
from dataclasses import dataclass
from typing import Any

from bertsmith.errors import FolderError
from bertsmith.files.safe_folder import MEGABYTE, parse_json

HEADER_LIMIT = 10 * MEGABYTE
TENSOR_LIMIT = 10_000
NAME_LIMIT = 512
RANK_LIMIT = 8

FLOATS = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}
INTEGERS = {"I64": 8, "I32": 4, "I16": 2, "I8": 1, "U64": 8, "U32": 4, "U16": 2, "U8": 1, "BOOL": 1}
WIDTHS = FLOATS | INTEGERS


@dataclass(frozen=True, slots=True)
class TensorPlace:
    """Where a stored tensor lies: type, shape, first byte and length in the file."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    length: int


def read_header(file: io.FileIO, *, where: str) -> dict[str, TensorPlace]:
    """The tensors of an open safetensors file by name; `where` names the file in errors."""
    size = os.fstat(file.fileno()).st_size
    file.seek(0)
    start = file.read(8)
    if len(start) < 8:
        raise FolderError(
            f"{where}: {size:,} bytes are too few for a safetensors file; copy it again"
        )
    (length,) = struct.unpack("<Q", start)
    if length > HEADER_LIMIT or length < 2:
        raise FolderError(
            f"{where}: the header claims {length:,} bytes (2 to {HEADER_LIMIT:,} are allowed); "
            "this is not a safetensors file, whatever it is called"
        )
    if 8 + length > size:
        raise FolderError(
            f"{where}: the file ends inside its header ({size:,} of {8 + length:,} bytes); "
            "it is truncated: copy it again"
        )
    header = file.read(length)
    if len(header) != length or not header.startswith(b"{"):
        raise FolderError(f"{where}: no safetensors header; this is not a safetensors file")
    if header.count(b"{") > TENSOR_LIMIT + 2:  # counted before parsing: parsing costs seconds
        raise FolderError(f"{where}: more than {TENSOR_LIMIT:,} tensors; no BERT has so many")
    entries = parse_json(header, where=f"{where} (header)")
    metadata = entries.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise FolderError(f"{where}: __metadata__ must map strings to strings")
    places = {name: _place(name, entry, 8 + length, where) for name, entry in entries.items()}
    _check_cover(places, 8 + length, size, where)
    return places


def _place(name: str, entry: Any, data_start: int, where: str) -> TensorPlace:
    if not name or len(name) > NAME_LIMIT or not name.isprintable():
        raise FolderError(f"{where}: a tensor is called {ascii(name)[:80]}; that is not a name")
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise FolderError(f"{where}: {name}: needs exactly dtype, shape and data_offsets")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in WIDTHS:
        raise FolderError(
            f"{where}: {name}: the type {ascii(dtype)[:40]} is not read; "
            f"store it as one of {', '.join(FLOATS)}"
        )
    if not _counts(shape) or len(shape) > RANK_LIMIT:
        raise FolderError(f"{where}: {name}: the shape {ascii(shape)[:60]} is not a shape")
    if not _counts(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise FolderError(f"{where}: {name}: data_offsets {ascii(offsets)[:60]} are no range")
    begin, end = offsets
    needed = math.prod(shape) * WIDTHS[dtype]
    if needed != end - begin:
        raise FolderError(
            f"{where}: {name}: {dtype} of shape {tuple(shape)} takes {needed:,} bytes, "
            f"the file gives it {end - begin:,}"
        )
    return TensorPlace(dtype, tuple(shape), data_start + begin, needed)


def _counts(value: Any) -> bool:
    """Whether this is a list of whole numbers from 0 on."""
    return isinstance(value, list) and all(
        type(item) is int and 0 <= item < (1 << 62) for item in value
    )


def _check_cover(places: dict[str, TensorPlace], start: int, size: int, where: str) -> None:
    """Tensors must follow one another to the end of the file: no overlap, no hole."""
    reached, before = start, "the header"
    for name, place in sorted(places.items(), key=lambda item: (item[1].start, item[1].length)):
        if place.start != reached:
            kind = "overlaps" if place.start < reached else "leaves a hole after"
            raise FolderError(f"{where}: {name} {kind} {before}; the file is damaged or forged")
        reached, before = place.start + place.length, name
    if reached > size:
        raise FolderError(
            f"{where}: the file has {size:,} bytes and its tensors need {reached:,}; "
            "it is truncated: copy it again"
        )
    if reached < size:
        raise FolderError(f"{where}: {size - reached:,} bytes follow the last tensor; not expected")
