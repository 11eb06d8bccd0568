"""Writes word vectors, whole or not at all; .gz by the end of the name."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bertsmith.errors import WriteError, unknown
from bertsmith.files.atomic_file import StagedFile
from bertsmith.files.streams import packing_of
from bertsmith.files.word_vectors.rows import VECTOR_FORMS, Matrix, VectorForm
from bertsmith.wording import shown

_TOGETHER = 1_000  # words per block
_PARTING = re.compile(r"[ \n\r]|[\ud800-\udfff]")
_GZIP = 31  # window bits that make zlib write gzip's header, without a time


def form_by_name(path: Path) -> VectorForm:
    """The form that a file of this name gets: binary for .bin, else word2vec's text."""
    name = path.name.lower().removesuffix(packing_of(path))
    return "binary" if name.endswith(".bin") else "text"


def write_word_vectors(
    path: Path, words: Sequence[str], matrix: Matrix, *, form: VectorForm | None = None
) -> None:
    """Write words and vectors (V, D); numbers come back exactly, in text too.

    A word with a space or a line break, an empty one, one that stands there twice and numbers
    that are not finite are refused: other programs would read another file than was written.
    """
    form = form or form_by_name(path)
    if form not in VECTOR_FORMS:
        raise unknown("form of word vectors", form, VECTOR_FORMS)
    if packing_of(path) == ".zst":
        raise WriteError(f"cannot write {path}: word vectors are packed as .gz only")
    _check(path, words, matrix)
    packer = zlib.compressobj(6, zlib.DEFLATED, _GZIP) if packing_of(path) else None
    with StagedFile(path) as file:
        if form != "glove":
            head = f"{len(words)} {matrix.shape[1]}\n".encode()
            file.write(packer.compress(head) if packer else head)
        for start in range(0, len(words), _TOGETHER):
            part = slice(start, start + _TOGETHER)
            block = _block(words[part], np.ascontiguousarray(matrix[part], dtype="<f4"), form)
            file.write(packer.compress(block) if packer else block)
        if packer:
            file.write(packer.flush())


def _block(words: Sequence[str], rows: Matrix, form: VectorForm) -> bytes:
    if form == "binary":
        return b"".join(
            f"{word} ".encode() + row.tobytes() for word, row in zip(words, rows, strict=True)
        )
    lines = (
        f"{word} {' '.join([f'{number:.9g}' for number in row])}\n"
        for word, row in zip(words, rows.tolist(), strict=True)
    )
    return "".join(lines).encode()


def _check(path: Path, words: Sequence[str], matrix: Matrix) -> None:
    if matrix.ndim != 2 or len(words) != len(matrix) or not matrix.size:
        raise WriteError(
            f"cannot write {path}: {len(words):,} words and vectors of shape {matrix.shape}"
        )
    seen: set[str] = set()
    for number, word in enumerate(words, start=1):
        if not word or _PARTING.search(word):
            raise WriteError(
                f"cannot write {path}: word {number:,}, {shown(word)}, is empty or holds a space "
                "or a line break, which no form of word vectors can hold; rename or remove it"
            )
        if word in seen:
            raise WriteError(f"cannot write {path}: word {number:,}, {shown(word)}, is there twice")
        seen.add(word)
    for start in range(0, len(words), _TOGETHER):
        finite = np.isfinite(matrix[start : start + _TOGETHER]).all(axis=1)
        if not finite.all():
            at = start + int(np.argmin(finite))
            raise WriteError(
                f"cannot write {path}: the vector of word {at + 1:,}, {shown(words[at])}, holds "
                "NaN or infinity; remove the word or train again"
            )
