"""Reads word vectors from a file of any form; sizes are compared before memory is taken."""

from __future__ import annotations

import re
from pathlib import Path

from bertsmith.errors import InputFileError, unknown
from bertsmith.files.folder_hashes import at_load, check_hashes
from bertsmith.files.safe_folder import Folder
from bertsmith.files.streams import packing_of, read_start, unreadable
from bertsmith.files.word_vectors.binary import read_binary
from bertsmith.files.word_vectors.rows import VECTOR_FORMS, Matrix, VectorForm
from bertsmith.files.word_vectors.text import read_text
from bertsmith.wording import shown

VECTORS = "vectors.bin"  # in a folder of word vectors
_SIZES = re.compile(rb"(\d{1,18})[ \t]+(\d{1,18})[ \t]*\r?\n")
_NUMBERS = frozenset(b"0123456789+-.eE \t\r")
_START = 4_096
_MOST_WIDE = 1 << 20
_EXPANSION = 1_100  # deflate and zstd make at most so many bytes of one that matter here
_LEAST = {"text": (2, 2), "binary": (4, 2)}  # bytes per number and per word, at least


def read_word_vectors(
    path: Path, *, form: VectorForm | None = None, most: int | None = None
) -> tuple[list[str], Matrix]:
    """Words and vectors (V, D) of a file, or of a folder of `bertsmith words train`.

    The form is found by looking at the file; .gz and .zst are unpacked. `most` stops after so
    many words. Refused with file and place: sizes that do not fit, short rows, words that stand
    there twice, numbers that are not finite.
    """
    if form is not None and form not in VECTOR_FORMS:
        raise unknown("form of word vectors", form, VECTOR_FORMS)
    folder, path = Path(path), vector_file(Path(path))
    if folder.is_dir():
        check_hashes(Folder.at(folder), lambda name, size: name == VECTORS and at_load(name, size))
    start = read_start(path, _START)
    sizes = None if form == "glove" else _SIZES.match(start)
    if sizes is None:
        if form not in (None, "glove"):
            raise InputFileError(
                f"{path}, line 1: {shown(_first(start))} is not the number of words and the number "
                'of numbers per word, as "20000 300"; a file without that line is of form glove'
            )
        return read_text(path, None, most)
    count, width = int(sizes[1]), int(sizes[2])
    if form is None:
        form = "text" if _is_text(start[sizes.end() :]) else "binary"
    _check_size(path, form, count, width, sizes.end())
    if form == "binary":
        return read_binary(path, (count, width), sizes.end(), most)
    return read_text(path, (count, width), most)


def vector_file(path: Path) -> Path:
    """The file itself, or the one with the vectors in a folder of `bertsmith words train`."""
    if path.is_dir():
        if not (path / VECTORS).is_file():
            raise InputFileError(
                f"{path} is a folder without {VECTORS}; give a file of word vectors, or a folder "
                "of `bertsmith words train`"
            )
        return path / VECTORS
    return path


def _first(start: bytes) -> str:
    return start.split(b"\n", 1)[0].decode("utf-8", "replace")


def _is_text(rows: bytes) -> bool:
    """Whether what follows the first word are written numbers."""
    line = rows.lstrip(b"\n").partition(b" ")[2].split(b"\n", 1)[0]
    return _NUMBERS.issuperset(line.lower().replace(b"nan", b"").replace(b"inf", b""))


def _check_size(path: Path, form: str, count: int, width: int, header: int) -> None:
    """Refuse sizes that the bytes of the file cannot hold."""
    try:
        there = path.stat().st_size
    except OSError as error:
        raise unreadable(path, error) from error
    if count == 0 or not 0 < width <= _MOST_WIDE:
        raise InputFileError(
            f"{path}, line 1: {count:,} words of {width:,} numbers; both must be at least 1 and "
            f"the numbers at most {_MOST_WIDE:,}; is the first line that of word2vec?"
        )
    per_number, per_word = _LEAST[form]
    needed = header + count * (width * per_number + per_word) - 1
    if needed > there * (_EXPANSION if packing_of(path) else 1):
        raise InputFileError(
            f"{path}, line 1: {count:,} words of {width:,} numbers need at least {needed:,} bytes "
            f"and the file has {there:,}; it is cut off or its first line is wrong: copy it anew"
        )
