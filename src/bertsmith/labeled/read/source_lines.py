"""The physical lines of a file, where a line that cannot be read does not end the reading."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from bertsmith.errors import InputFileError
from bertsmith.files.encodings import byte_order_mark, check_encoding, unmarked_utf16
from bertsmith.files.streams import ByteStream
from bertsmith.labeled.read.line_batches import Batch, Line, LineBatches, undecodable


class SourceLines:
    r"""Lines of a file, split at \n or \r\n and at nothing else; closed when they are used up.

    `number` is the line that was given last, counted from 1, and `ending` what ended it.
    """

    def __init__(self, path: Path, encoding: str = "utf-8") -> None:
        self.name = str(path)
        self.number = 0
        self.ending = ""
        self.encoding = check_encoding(encoding)
        self._stream: ByteStream | None = ByteStream(path)
        self._size = path.stat().st_size
        self._offset = 0  # the length of the byte order mark
        self._back: deque[tuple[Line, str]] = deque()
        self._start: bytes | None = None  # what was read to settle the encoding
        self._ended = False  # the whole file was
        self._text: str | None = None
        self._source: Iterator[Batch] | None = None

    @classmethod
    def of_text(cls, name: str, text: str, first_line: int) -> SourceLines:
        """The lines of a text at hand, numbered as in the file that it comes from."""
        lines = cls.__new__(cls)
        lines.name, lines.number, lines.ending = name, first_line - 1, ""
        lines.encoding, lines._stream, lines._size = "utf-8", None, 0
        lines._offset, lines._start, lines._text = 0, b"", text
        lines._ended, lines._source = True, None
        lines._back = deque()
        return lines

    @property
    def share(self) -> float | None:
        """The part of the file that was read, 0 to 1; None where its size means nothing."""
        return self._stream.position / self._size if self._stream and self._size else None

    def close(self) -> None:
        """Let go of the file before its end."""
        if self._stream is not None:
            self._stream.close()

    def __iter__(self) -> Iterator[Line]:
        if self._source is None:
            self._source = self._batches()
        for batch, returns in self._source:
            self.ending = "\n"
            for line in batch:
                self.number += 1
                if returns and isinstance(line, str) and line.endswith("\r"):
                    self.ending = "\r\n"
                    yield line[:-1]
                    self.ending = "\n"
                else:
                    yield line
                if self._back:
                    yield from self._once_more()
        yield from self._once_more()

    def _once_more(self) -> Iterator[Line]:
        while self._back:
            self.number += 1
            given, self.ending = self._back.popleft()
            yield given
        self.ending = "\n"

    @property
    def waiting(self) -> bool:
        """Whether lines were put back after the last one: they come with another iteration."""
        return bool(self._back)

    def put_back(self, lines: list[tuple[Line, str]]) -> None:
        """Give these lines, the last ones that were read, once more."""
        self._back.extendleft(reversed(lines))
        self.number -= len(lines)

    def first_character(self) -> str:
        """The first character that is not white space; the lines stay to be read."""
        if self._text is not None:
            return self._text.lstrip()[:1]
        return self._opened().decode(self.encoding, "ignore").lstrip()[:1]

    def whole(self, largest: int) -> str:
        """The whole text instead of its lines, if it has no more than so many bytes."""
        if self._text is not None or self._stream is None:
            return self._text or ""
        held = bytearray()
        chunks = itertools.chain([self._opened()], () if self._ended else self._stream)
        try:
            for chunk in chunks:
                held += chunk
                if len(held) > largest:
                    raise InputFileError(
                        f"{self.name} has more than {largest:,} bytes, and one JSON document is "
                        "read as a whole; cut it into several files, or write one object a line"
                    )
        finally:
            self._stream.close()
        try:
            return held.decode(self.encoding)
        except UnicodeDecodeError as error:
            line = held.count(b"\n", 0, error.start) + 1
            start = max(0, error.start - 2_000)
            sample = bytes(held[start : error.start + 2_000])
            reason, advice = undecodable(error, self._offset, self.encoding, sample)
            raise InputFileError(f"{self.name}, line {line}: {reason}; {advice}") from error

    def _opened(self) -> bytes:
        """The first bytes after the byte order mark; settles the encoding."""
        if self._start is None:
            start = b""
            for chunk in self._stream or ():
                start += chunk
                if len(start) >= 4:
                    break
            else:
                self._ended = True
            self._offset = self._settle_encoding(start)
            self._start = start[self._offset :]
        return self._start

    def _batches(self) -> Iterator[Batch]:
        stream = self._stream
        if stream is None:
            rows: list[Line] = list((self._text or "").split("\n"))
            yield (rows[:-1] if rows[-1] == "" else rows), True
            return
        try:
            chunks = itertools.chain([self._opened()], () if self._ended else stream)
            yield from LineBatches(self.name, self.encoding, self._offset).of(chunks)
        finally:
            stream.close()

    def _settle_encoding(self, start: bytes) -> int:
        """Decide the encoding from the first bytes; returns the length of the mark to skip."""
        marked = byte_order_mark(start)
        if marked is not None:
            self.encoding = marked[0]
            return marked[1]
        if self.encoding == "utf-8" and (found := unmarked_utf16(start)) is not None:
            raise InputFileError(
                f"{self.name}, line 1, byte 0: every second byte is NUL and there is no byte order "
                f"mark: it looks like {found}; read it with --encoding {found}"
            )
        return 0
