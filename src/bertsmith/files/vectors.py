"""Vectors to a file as a stream: .npy (float32), .tsv or .jsonl, whole or not at all."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bertsmith.errors import WriteError
from bertsmith.files.atomic_file import StagedFile

TEXT_FORMS = {".tsv": ("", "\t", ""), ".jsonl": ("[", ",", "]")}
SUFFIXES = (".npy", *TEXT_FORMS)
_HEADER = 128  # bytes: room for any row count, and the alignment that numpy wants


class VectorWriter:
    """Appends blocks of vectors (n, D) to a file that appears when the `with` ends well."""

    def __init__(self, path: Path, width: int) -> None:
        self.rows = 0
        self.width = width
        check_target(path)
        self._text = TEXT_FORMS.get(path.suffix.lower())
        self._file = StagedFile(path)
        self._file.write(b"" if self._text else _npy_header(0, width))

    def append(self, vectors: NDArray[np.float32]) -> None:
        """Write the next rows."""
        if vectors.ndim != 2 or vectors.shape[1] != self.width:
            raise ValueError(f"expected (n, {self.width}), got {vectors.shape}")
        block = np.ascontiguousarray(vectors, dtype="<f4")
        if self._text:
            self._file.write(_text_rows(block, *self._text))
        elif block.size:
            self._file.write(block.data.cast("B"))
        self.rows += len(vectors)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._file.drop()
            return
        with self._file:
            if not self._text:
                self._file.rewrite_start(_npy_header(self.rows, self.width))


def check_target(path: Path) -> None:
    """Refuse a name whose ending no form of output has, before any work is done."""
    if path.suffix.lower() not in SUFFIXES:
        raise WriteError(f"cannot write {path}: its name must end in {', '.join(SUFFIXES)}")


def _npy_header(rows: int, width: int) -> bytes:
    """The header of the numpy format, version 1.0: little-endian float32, C order."""
    about = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {width}), }}"
    length = _HEADER - 10
    start = b"\x93NUMPY\x01\x00" + struct.pack("<H", length)
    return start + about.ljust(length - 1).encode() + b"\n"


def _text_rows(vectors: NDArray[np.float32], opening: str, separator: str, closing: str) -> bytes:
    """One row per line; nine significant digits bring every float32 back exactly."""
    rows = (separator.join([f"{x:.9g}" for x in row]) for row in vectors.tolist())
    return "".join(f"{opening}{row}{closing}\n" for row in rows).encode("ascii")
