"""Vectors to a file as a stream: .npy (float32), .tsv or .jsonl, whole or not at all."""

from __future__ import annotations

import struct
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from bertsmith.errors import WriteError
from bertsmith.files.atomic_file import StagedFile

SUFFIXES = (".npy", ".tsv", ".jsonl")
_HEADER = 128  # bytes: room for any row count, and the alignment that numpy wants


class _Rows(Protocol):
    """How the rows of a matrix look as bytes, and what stands before them."""

    def start(self, rows: int, width: int) -> bytes: ...

    def block(self, vectors: NDArray[np.float32]) -> bytes | memoryview: ...


class VectorWriter:
    """Appends blocks of vectors (n, D) to a file that appears when the `with` ends well."""

    def __init__(self, path: Path, width: int) -> None:
        self.rows = 0
        self.width = width
        self._form = _form_of(path)
        self._file = StagedFile(path)
        self._file.write(self._form.start(0, width))

    def append(self, vectors: NDArray[np.float32]) -> None:
        """Write the next rows."""
        if vectors.ndim != 2 or vectors.shape[1] != self.width:
            raise ValueError(f"expected (n, {self.width}), got {vectors.shape}")
        self._file.write(self._form.block(np.ascontiguousarray(vectors, dtype="<f4")))
        self.rows += len(vectors)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            self._file.drop()
            return
        with self._file:
            self._file.rewrite_start(self._form.start(self.rows, self.width))


def check_target(path: Path) -> None:
    """Refuse a name whose ending no form of output has, before any work is done."""
    _form_of(path)


def _form_of(path: Path) -> _Rows:
    forms: dict[str, _Rows] = {
        ".npy": _Npy(),
        ".tsv": _Text("", "\t", ""),
        ".jsonl": _Text("[", ",", "]"),
    }
    form = forms.get(path.suffix.lower())
    if form is None:
        raise WriteError(f"cannot write {path}: its name must end in {', '.join(SUFFIXES)}")
    return form


class _Npy:
    """numpy's own format, version 1.0, little-endian float32, C order."""

    def start(self, rows: int, width: int) -> bytes:
        about = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {width}), }}"
        length = _HEADER - 10
        return (
            b"\x93NUMPY\x01\x00"
            + struct.pack("<H", length)
            + about.ljust(length - 1).encode()
            + b"\n"
        )

    def block(self, vectors: NDArray[np.float32]) -> bytes | memoryview:
        return vectors.data.cast("B") if vectors.size else b""


class _Text:
    """One row per line; nine significant digits bring every float32 back exactly."""

    def __init__(self, opening: str, separator: str, closing: str) -> None:
        self._opening, self._separator, self._closing = opening, separator, closing

    def start(self, rows: int, width: int) -> bytes:
        return b""

    def block(self, vectors: NDArray[np.float32]) -> bytes | memoryview:
        rows = (self._separator.join([f"{x:.9g}" for x in row]) for row in vectors.tolist())
        return "".join(f"{self._opening}{row}{self._closing}\n" for row in rows).encode("ascii")
