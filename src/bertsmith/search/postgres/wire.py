"""Rows as COPY reads them in binary, and vectors in the binary form of pgvector.

A vector is its width and 0 as 16-bit numbers, then its values: 32 bits each for the type vector,
16 for halfvec. All numbers are big-endian.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertsmith.errors import InputFileError
from bertsmith.search.bm25 import (
    COUNTS,
    LENGTHS,
    POSTING_STARTS,
    POSTINGS,
    TERMS,
    postings_files,
)
from bertsmith.search.filters import number_of
from bertsmith.search.postgres.terms import LENGTHS_OF_ROWS, term_key
from bertsmith.search.store import Matrix, StoredRow, StoredType

HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TRAILER = struct.pack(">h", -1)
JSONB = b"\x01"  # the version in front of the text
FORMS = {"float32": ">f4", "float16": ">f2"}
HEAD = 4  # bytes in front of the values of a vector


def copied_rows(
    rows: Sequence[StoredRow], vectors: Matrix, stored: StoredType, first: int
) -> Iterator[bytes]:
    """Rows and their vectors (n, D) for COPY; `first` is the number of the first, for errors."""
    values = np.ascontiguousarray(vectors, dtype=FORMS[stored])
    head = struct.pack(">hh", vectors.shape[1], 0)
    yield HEADER
    for number, (row, vector) in enumerate(zip(rows, values, strict=True), start=first):
        numbers = {
            name: repr(value)
            for name, cell in row.meta.items()
            if (value := number_of(cell)) is not None
        }
        cells = json.dumps(dict(row.meta), ensure_ascii=False)
        _check(number, row)
        yield _record(
            struct.pack(">q", row.id),
            row.text.encode(),
            JSONB + cells.encode(),
            JSONB + json.dumps(numbers, ensure_ascii=False).encode(),
            head + vector.tobytes(),
        )
    yield TRAILER


def copied_words(texts: Iterable[Sequence[str]], first_id: int) -> Iterator[bytes]:
    """The postings of a block of texts as words, for COPY; and how many words each text has."""
    files = postings_files(texts)
    starts = np.frombuffer(files[POSTING_STARTS], "<u8").astype(np.int64) * 4
    block = struct.pack(">q", first_id)
    yield HEADER
    yield _record(LENGTHS_OF_ROWS.encode(), block, files[LENGTHS], b"")
    for place, term in enumerate(files[TERMS].split(b"\n")[:-1]):
        part = slice(int(starts[place]), int(starts[place + 1]))
        key = term_key(term.decode()).encode()
        yield _record(key, block, files[POSTINGS][part], files[COUNTS][part])
    yield TRAILER


def vector_text(vector: Matrix) -> str:
    """A vector (D,) as a parameter; it is read back to the same bits."""
    return "[" + ",".join(map(repr, vector.tolist())) + "]"


def vectors_of(received: Sequence[bytes], stored: str) -> NDArray[Any]:
    """Vectors as the server sends them -> (n, D)."""
    form = np.dtype(FORMS[stored])
    joined = b"".join(one[HEAD:] for one in received)
    return np.frombuffer(joined, form).reshape(len(received), -1).astype(form.newbyteorder("="))


def _record(*fields: bytes) -> bytes:
    parts = [struct.pack(">h", len(fields))]
    for one in fields:
        parts += (struct.pack(">i", len(one)), one)
    return b"".join(parts)


def _check(number: int, row: StoredRow) -> None:
    """Refuse what PostgreSQL cannot store as text."""
    for name, text in (("its text", row.text), *_cells(row)):
        if "\0" in text:
            raise InputFileError(
                f"row {number:,}: {name} has the character U+0000, which PostgreSQL cannot store; "
                "remove it"
            )
        if not text.isascii() and any("\ud800" <= sign <= "\udfff" for sign in text):
            raise InputFileError(
                f"row {number:,}: {name} has half of a surrogate pair, which is not a character; "
                "remove it"
            )


def _cells(row: StoredRow) -> Iterator[tuple[str, str]]:
    for name, cell in row.meta.items():
        yield "the name of a column", name
        yield f"the column {name!r}", cell
