"""VectorRows of written numbers: word2vec's text form, and GloVe's, which has no line of sizes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from bertsmith.errors import InputFileError
from bertsmith.files.lines import text_lines
from bertsmith.files.word_vectors.rows import Matrix, VectorRows
from bertsmith.wording import shown

_TOGETHER = 1_000  # rows parsed at a time
_AS = "expected a word and its numbers, parted by single spaces"

Numbered = list[tuple[int, str]]


def read_text(
    path: Path, sizes: tuple[int, int] | None, most: int | None
) -> tuple[list[str], Matrix]:
    """Words and vectors; `sizes` (V, D) are those of the first line, None if it has none."""
    lines = enumerate(text_lines(path), start=1)
    blocks: list[Matrix] = []
    if sizes is not None:
        next(lines)
        count = sizes[0] if most is None else min(most, sizes[0])
        rows = VectorRows.reserve(path, count, sizes[1])
    else:
        rows = VectorRows(path, 0, np.zeros((0, 0), dtype=np.float32))
    for block in _blocks(lines):
        _refuse_more(path, sizes, len(rows.words), block)
        if most is not None:
            block = block[: most - len(rows.words)]
        done = len(rows.words)
        numbers = _parse(rows, block)
        if sizes is None:
            blocks.append(numbers)
        else:
            rows.matrix[done : done + len(numbers)] = numbers
        if most is not None and len(rows.words) == most:
            break
    if sizes is None:
        if not blocks:
            raise InputFileError(f"{path} holds no word vectors; {_AS} on every line")
        rows.matrix = np.concatenate(blocks)
    elif len(rows.words) < len(rows.matrix):
        raise InputFileError(
            f"{path}, line {len(rows.words) + 2}: the file ends after {len(rows.words):,} words "
            f"and its first line promises {sizes[0]:,}; it is cut off: copy it anew"
        )
    return rows.words, rows.matrix


def _blocks(lines: Iterator[tuple[int, str]]) -> Iterator[Numbered]:
    """Lines that are not empty, by the block; the first block is one line, which sets the width."""
    filled = ((number, line) for number, line in lines if line)
    size = 1
    while block := list(islice(filled, size)):
        yield block
        size = _TOGETHER


def _refuse_more(path: Path, sizes: tuple[int, int] | None, done: int, block: Numbered) -> None:
    if sizes is not None and done + len(block) > sizes[0]:
        line = block[sizes[0] - done][0]
        raise InputFileError(
            f"{path}, line {line}: one word more than the {sizes[0]:,} that line 1 promises; "
            "correct the first line"
        )


def _parse(rows: VectorRows, block: Numbered) -> Matrix:
    """The numbers (n, D) of some lines; their words are added to `rows`."""
    texts: list[str] = []
    for number, line in block:
        word, _, rest = line.partition(" ")
        if not rows.width:
            rows.width = len([field for field in rest.split(" ") if field])
        if rest.count(" ") != rows.width - 1 or rest.endswith(" ") or rest.startswith(" "):
            fields = [field for field in rest.split(" ") if field]
            if len(fields) != rows.width:
                raise _wrong_row(rows, number, line, fields)
            rest = " ".join(fields)
        if not word or not rest:
            raise InputFileError(f"{rows.path}, line {number}: {shown(line)}; {_AS}")
        rows.name(word, f"line {number}")
        texts.append(rest)
    numbers = _floats(" ".join(texts))
    if len(numbers) != len(block) * rows.width or not np.isfinite(numbers).all():
        raise _not_numbers(rows, block, texts)
    return numbers.reshape(-1, rows.width)


def _floats(text: str) -> Matrix:
    """Numbers parted by spaces, up to the first that is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        try:
            return np.fromstring(text, dtype=np.float32, sep=" ")
        except (DeprecationWarning, ValueError):
            return np.zeros(0, dtype=np.float32)


def _wrong_row(rows: VectorRows, number: int, line: str, fields: list[str]) -> InputFileError:
    reason = (
        f"{len(fields):,} numbers, but the first line promises {rows.width:,}"
        if len(rows.matrix)
        else f"{len(fields):,} numbers, but the first vector has {rows.width:,}"
    )
    way = "copy the file anew or remove the line"
    if len(fields) > rows.width:
        way = "a word must not hold a space: write another character, or remove the line"
    return InputFileError(f"{rows.path}, line {number}: {reason} ({shown(line)}); {way}")


def _not_numbers(rows: VectorRows, block: Numbered, texts: list[str]) -> InputFileError:
    """The first field that is no finite number, by its line."""
    for (number, line), text in zip(block, texts, strict=True):
        for field in text.split(" "):
            try:
                value = np.float32(field)
            except ValueError:
                word = line.partition(" ")[0]
                return InputFileError(
                    f"{rows.path}, line {number}: {shown(field)} after {shown(word)} is no number; "
                    f"{_AS}"
                )
            if not np.isfinite(value):
                return InputFileError(
                    f"{rows.path}, line {number}: {shown(field)} is not a finite float32; remove "
                    "the line, or train the vectors again with a lower rate"
                )
    first = block[0][0]
    return InputFileError(f"{rows.path}, lines {first} to {block[-1][0]}: not numbers; {_AS}")
