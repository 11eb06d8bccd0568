"""Bytes to decoded lines as a stream: gzip, byte order marks, errors that name the place."""

from __future__ import annotations

import codecs
import difflib
import gzip
import io
import itertools
import logging
import sys
import zlib
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import BinaryIO, Literal, cast

from bertsmith.errors import InputFileError
from bertsmith.files.encodings import (
    byte_order_mark,
    check_encoding,
    likely_encodings,
    unmarked_utf16,
)

logger = logging.getLogger(__name__)

CHUNK = 1 << 18
LONGEST_LINE = 1 << 29  # characters; beyond it a file is not text of lines (or a gzip bomb)


class Lines(Iterator[str]):
    r"""The lines of a file or of standard input, split at \n or \r\n and at nothing else.

    `number` is the line that was given last, counted from 1, and `ending` what ended it.
    """

    def __init__(self, source: Path | Literal["-"], encoding: str = "utf-8") -> None:
        self.name = "standard input" if source == "-" else str(source)
        self.number = 0
        self.ending = ""
        self.encoding = check_encoding(encoding)
        self._size: int | None = None
        self._decoded_length = 0
        self._given_length = 0
        self._source = source
        self._raw = self._open()
        self._lines = self._split()

    def __next__(self) -> str:
        line, ended = next(self._lines)
        self.number += 1
        self._given_length += len(line) + ended
        if ended and line.endswith("\r"):
            self.ending = "\r\n"
            return line[:-1]
        self.ending = "\n" if ended else ""
        return line

    @property
    def share(self) -> float | None:
        """The part of the file whose lines were given, 0 to 1; None where its size is unknown."""
        if not self._size or not self._decoded_length:
            return None
        read = 1.0 if self._raw.closed else self._raw.tell() / self._size
        return read * self._given_length / self._decoded_length

    def _open(self) -> BinaryIO:
        if self._source == "-":
            if sys.stdin is None:
                raise InputFileError("standard input is closed; give a file instead of -")
            return sys.stdin.buffer
        path = self._source
        if path.is_dir():
            raise InputFileError(f"{path} is a folder; give a file of texts")
        try:
            raw = path.open("rb")
        except OSError as error:
            raise unreadable(path, error) from error
        if raw.seekable():
            self._size = path.stat().st_size
        return raw

    def _chunks(self) -> Generator[bytes, None, None]:
        """The bytes of the file, decompressed."""
        packed = self._source != "-" and self._source.suffix.lower() == ".gz"
        stream = cast(BinaryIO, gzip.GzipFile(fileobj=self._raw)) if packed else self._raw
        # read1 hands over what a pipe has now instead of waiting for a full chunk.
        read = getattr(stream, "read1", stream.read)
        try:
            while chunk := read(CHUNK):
                yield chunk
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise InputFileError(
                f"{self.name} is not a whole gzip file ({error}); check its size against the "
                "original, or drop the .gz from its name if it is not compressed"
            ) from error
        except OSError as error:
            raise InputFileError(f"cannot read {self.name}: {error.strerror or error}") from error
        finally:
            if self._source != "-":
                self._raw.close()

    def _decoded(self) -> Iterator[str]:
        """The text of the file in pieces, without the byte order mark."""
        with closing(self._chunks()) as chunks:
            start = b""
            for chunk in chunks:
                start += chunk
                if len(start) >= 4:
                    break
            start = start[self._settle_encoding(start) :]
            decoder = codecs.getincrementaldecoder(self.encoding)("strict")
            offset = self._mark
            lines_before = 0
            for chunk in _chain(start, chunks):
                held = len(decoder.getstate()[0])
                try:
                    text = decoder.decode(chunk)
                except UnicodeDecodeError as error:
                    raise self._undecodable(error, offset - held, lines_before, chunk) from error
                offset += len(chunk)
                lines_before += text.count("\n")
                self._decoded_length += len(text)
                yield text
            held = len(decoder.getstate()[0])
            try:
                yield decoder.decode(b"", final=True)
            except UnicodeDecodeError as error:
                raise self._undecodable(error, offset - held, lines_before, b"") from error

    def _settle_encoding(self, start: bytes) -> int:
        """Decide the encoding from the first bytes; returns the length of the mark to skip."""
        marked = byte_order_mark(start)
        self._mark = 0
        if marked is not None:
            encoding, self._mark = marked
            if encoding != self.encoding and not self.encoding.startswith(encoding[:6]):
                logger.info("%s starts with a %s mark: read as %s", self.name, encoding, encoding)
            self.encoding = encoding
        elif self.encoding == "utf-8" and (guess := unmarked_utf16(start)) is not None:
            raise InputFileError(
                f"{self.name} has a NUL in every second byte and no byte order mark: it looks like "
                f"{guess}; read it with --encoding {guess}"
            )
        return self._mark

    def _undecodable(
        self, error: UnicodeDecodeError, offset: int, lines_before: int, chunk: bytes
    ) -> InputFileError:
        bad = error.object[error.start : error.start + 1].hex()
        before = error.object[: error.start].decode(self.encoding, "ignore")
        line = lines_before + before.count("\n") + 1
        message = (
            f"{self.name}, line {line}, byte {offset + error.start}: "
            f"byte 0x{bad} is not valid {self.encoding} ({error.reason})"
        )
        likely = [e for e in likely_encodings(self._sample(chunk)) if e != self.encoding]
        if not likely:
            return InputFileError(f"{message}; no common encoding fits: the file may be damaged")
        tried = f"the file decodes as {', '.join(likely)}"
        return InputFileError(f"{message}; {tried}; try --encoding {likely[0]}")

    def _sample(self, chunk: bytes) -> bytes:
        """What a guess at the encoding is made from: the file's start, or the bytes at hand."""
        if self._source == "-" or self._size is None:
            return chunk
        opener = gzip.open if self._source.suffix.lower() == ".gz" else io.open
        with opener(self._source, "rb") as again:
            return again.read(CHUNK) + chunk

    def _split(self) -> Iterator[tuple[str, bool]]:
        pending: list[str] = []
        waiting = 0
        for text in self._decoded():
            first, *rest = text.split("\n")
            pending.append(first)
            waiting += len(first)
            if rest:
                yield "".join(pending), True
                for line in rest[:-1]:
                    yield line, True
                pending, waiting = [rest[-1]], len(rest[-1])
            if waiting > LONGEST_LINE:
                raise InputFileError(
                    f"{self.name}, line {self.number + 1}: more than {LONGEST_LINE:,} characters "
                    "without a line break; is this a file of texts?"
                )
        if last := "".join(pending):
            yield last, False


def _chain(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    if first:
        yield first
    yield from rest


LOOKED_AT = 10_000  # names of a folder


def unreadable(path: Path, fault: OSError) -> InputFileError:
    """The error; where there is no such file, with the nearest name beside it."""
    return InputFileError(f"cannot read {path}: {fault.strerror or fault}{_hint(path, fault)}")


def _hint(path: Path, fault: OSError) -> str:
    if not isinstance(fault, FileNotFoundError):
        return ""
    try:
        names = [one.name for one in itertools.islice(path.parent.iterdir(), LOOKED_AT)]
    except OSError:
        return ""  # the folder is not there either, or hidden
    near = difflib.get_close_matches(path.name, sorted(names), n=1)
    return f"; did you mean {path.with_name(near[0])}?" if near else ""
