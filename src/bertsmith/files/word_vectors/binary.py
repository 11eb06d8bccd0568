"""word2vec's binary form: a line of sizes, then each word, a space and little-endian float32."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bertsmith.errors import InputFileError
from bertsmith.files.streams import ByteStream
from bertsmith.files.word_vectors.rows import Matrix, VectorRows
from bertsmith.wording import shown

_LONGEST_WORD = 1 << 16  # bytes
_HELD = 1 << 22


def read_binary(
    path: Path, sizes: tuple[int, int], header: int, most: int | None
) -> tuple[list[str], Matrix]:
    """Words and vectors; `header` bytes hold the line of `sizes` (V, D)."""
    count, width = sizes
    wanted = count if most is None else min(most, count)
    rows = VectorRows.reserve(path, wanted, width)
    buffer = _Buffer(path, header)
    for number in range(wanted):
        word = buffer.word(number)
        row = buffer.take(4 * width, number)
        rows.matrix[number] = np.frombuffer(row, dtype="<f4")
        rows.name(word, f"word {number + 1:,}")
    finite = np.isfinite(rows.matrix).all(axis=1)
    if not finite.all():
        at = int(np.argmin(finite))
        raise InputFileError(
            f"{path}, word {at + 1:,} ({shown(rows.words[at])}): a number of its vector is not "
            "finite; the file is damaged, or its first line gives the wrong number of numbers"
        )
    if wanted == count and (left := buffer.rest()):
        raise InputFileError(
            f"{path}: {left:,} bytes follow the {count:,} words of {width:,} numbers that line 1 "
            "promises; correct the first line or copy the file anew"
        )
    buffer.close()
    return rows.words, rows.matrix


class _Buffer:
    """The bytes after the line of sizes."""

    def __init__(self, path: Path, header: int) -> None:
        self._path = path
        self._stream = ByteStream(path)
        self._held = b""
        self._at = 0
        self._fill(header)
        self._at = header

    def word(self, number: int) -> str:
        """The next word, without the line break that some programs write before it."""
        end = self._held.find(b" ", self._at)
        while end < 0 and len(self._held) - self._at <= _LONGEST_WORD and self._more():
            end = self._held.find(b" ", self._at)
        raw = self._held[self._at : end].lstrip(b"\n") if end >= 0 else b""
        if not 0 < len(raw) <= _LONGEST_WORD or b"\n" in raw:
            raise self._fault(number, "no word begins here")
        self._at = end + 1
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise self._fault(number, f"the word {raw[:20]!r} is not UTF-8") from error

    def take(self, size: int, number: int) -> bytes:
        """The next bytes."""
        if not self._fill(size):
            raise self._fault(number, "the file ends inside a vector")
        self._at += size
        return self._held[self._at - size : self._at]

    def rest(self) -> int:
        """How many bytes are left, a last line break aside."""
        left = self._held[self._at :].lstrip(b"\r\n")
        return len(left) + sum(len(chunk.lstrip(b"\r\n")) for chunk in self._stream)

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def _fill(self, size: int) -> bool:
        while len(self._held) - self._at < size:
            if not self._more():
                return False
        return True

    def _more(self) -> bool:
        """Read on; what was used up is dropped."""
        parts = [self._held[self._at :]]
        length = len(parts[0])
        target = length + _HELD
        for chunk in self._stream:
            parts.append(chunk)
            length += len(chunk)
            if length >= target:
                break
        self._at, grown = 0, len(parts) > 1
        self._held = b"".join(parts)
        return grown

    def _fault(self, number: int, reason: str) -> InputFileError:
        return InputFileError(
            f"{self._path}, word {number + 1:,}: {reason}; the file is damaged, or its first line "
            "gives the wrong sizes: copy it anew"
        )
