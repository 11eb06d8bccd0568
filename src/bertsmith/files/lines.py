"""The lines of a file, decoded by the block; a line that cannot be read is given as a fault."""

from __future__ import annotations

import codecs
import itertools
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path

from bertsmith.errors import InputFileError
from bertsmith.files.encodings import (
    check_encoding,
    settle_encoding,
    splits_at_line_feeds,
    undecodable,
)
from bertsmith.files.faults import UnreadableLineError
from bertsmith.files.streams import ByteStream, FileSource

LONGEST_LINE = 1 << 25  # bytes; a longer line is rejected and never held in memory
ENDLESS = 8  # times the longest line without a line feed: no file of lines, reading stops
SHOWN_OF_LONGEST = 1_000
BEYOND_DOUBT = 8  # characters; so much GBK or Latin-1 is UTF-8 by chance once in ten million rows

Line = str | UnreadableLineError
Batch = tuple[list[Line], bool]
"""Lines, and whether one of them may end with a carriage return."""


class Lines:
    r"""Lines of a file, split at \n or \r\n and at nothing else; closed after the last one.

    `number` is that of the line given last, counted from 1, and `ending` what ended it. A line of
    more than `LONGEST_LINE` bytes is given as a fault and never held as a whole.
    """

    def __init__(
        self, source: FileSource, encoding: str = "utf-8", *, text: str | None = None
    ) -> None:
        """`text` is read in place of the file."""
        self.name = "standard input" if source == "-" else str(source)
        self.number = 0
        self.ending = ""
        self.encoding = check_encoding(encoding)
        self._stream = ByteStream(source) if text is None else None
        self._mark = 0  # the length of the byte order mark
        self._start: bytes | None = None  # what was read to settle the encoding
        self._ended = False  # that was the whole file
        self._text = text
        self._back: deque[tuple[Line, str]] = deque()
        self._source: Iterator[Batch] | None = None
        self._batch = (0, 1, 0, 0)  # its first line, lines, stored bytes read before and after it

    @classmethod
    def of_text(cls, name: str, text: str, first_line: int) -> Lines:
        """The lines of a string, numbered as in the file that it comes from."""
        lines = cls("-", text=text)
        lines.name, lines.number = name, first_line - 1
        return lines

    @property
    def share(self) -> float | None:
        """The part of the file whose lines were given, 0 to 1; None where its size is unknown."""
        if self._stream is None or not self._stream.size or self._source is None:
            return None
        first, count, before, after = self._batch
        given = min(1.0, max(0.0, (self.number - first) / count))
        return (before + (after - before) * given) / self._stream.size

    def close(self) -> None:
        """Close the file before its end."""
        if self._stream is not None:
            self._stream.close()

    def __iter__(self) -> Iterator[Line]:
        if self._source is None:
            self._source = self._batches()
        for batch, returns in self._source:
            position = self._stream.position if self._stream else 0
            self._batch = (self.number, len(batch) or 1, self._batch[3], position)
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
                    yield from self._repeated()
        yield from self._repeated()

    def _repeated(self) -> Iterator[Line]:
        while self._back:
            self.number += 1
            line, self.ending = self._back.popleft()
            yield line
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
        try:
            for chunk in self._chunks():
                held += chunk
                if len(held) > largest:
                    raise InputFileError(
                        f"{self.name} has more than {largest:,} bytes, and one JSON document is "
                        "read as a whole; cut it into several files, or write one object per line"
                    )
        finally:
            self._stream.close()
        try:
            return held.decode(self.encoding)
        except UnicodeDecodeError as error:
            line = held.count(b"\n", 0, error.start) + 1
            start = max(0, error.start - 2_000)
            sample = bytes(held[start : error.start + 2_000])
            reason, advice = undecodable(error, self._mark, self.encoding, sample)
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
            self.encoding, self._mark = settle_encoding(self.name, start, self.encoding)
            self._start = start[self._mark :]
        return self._start

    def _chunks(self) -> Iterator[bytes]:
        return itertools.chain([self._opened()], () if self._ended else self._stream or ())

    def _batches(self) -> Iterator[Batch]:
        stream = self._stream
        if stream is None:
            rows: list[Line] = list((self._text or "").split("\n"))
            yield (rows[:-1] if rows[-1] == "" else rows), True
            return
        try:
            chunks = self._chunks()
            if splits_at_line_feeds(self.encoding):
                yield from self._cut(chunks, self.encoding, self._mark)
            else:
                yield from self._cut(
                    transcoded(chunks, self.name, self.encoding, self._mark), "utf-8", 0
                )
        finally:
            stream.close()

    def _cut(self, chunks: Iterable[bytes], encoding: str, offset: int) -> Iterator[Batch]:
        """Chunks cut at line feeds first, then decoded by the block; `offset` of the first one."""
        longest = LONGEST_LINE
        held: list[bytes] = []
        waiting = 0
        first = True
        for chunk in chunks:
            cut = chunk.rfind(b"\n") + 1
            if not cut:
                if waiting <= longest:
                    held.append(chunk)
                waiting += len(chunk)
                _refuse_endless(self.name, waiting, offset)
                continue
            if waiting > longest:
                end = chunk.index(b"\n") + 1
                yield [_too_long(held, waiting + end, longest, encoding)], False
                offset += waiting + end
                block = chunk[end:cut]
            else:
                block = b"".join([*held, chunk[:cut]])
            if block:
                yield decode_lines(block, encoding, offset), b"\r" in block
                offset += len(block)
            first = False
            held, waiting = [chunk[cut:]], len(chunk) - cut
        if waiting > longest:
            yield [_too_long(held, waiting, longest, encoding)], False
        elif last := b"".join(held):
            if first:
                self._refuse_old_mac(last)
            yield decode_lines(last, encoding, offset), b"\r" in last

    def _refuse_old_mac(self, last: bytes) -> None:
        if last.count(b"\r") > 1 and b"\n" not in last:
            raise InputFileError(
                f"{self.name}, line 1, column 1: {last.count(13):,} carriage returns and no line "
                "feed: lines end as on old Macs; convert them first: tr '\\r' '\\n' < FILE > NEW"
            )


def text_lines(path: Path) -> Iterator[str]:
    """The lines of a UTF-8 file with one entry per line; one that cannot be read is an error."""
    lines = Lines(path)
    for line in lines:
        if not isinstance(line, str):
            raise line.error(lines.name, lines.number)
        yield line


def whole_input() -> bytes:
    """All bytes of standard input as one text, if they are no more than a line may have."""
    held = bytearray()
    for chunk in ByteStream("-"):
        held += chunk
        if len(held) > LONGEST_LINE:
            raise InputFileError(
                f"standard input has more than {LONGEST_LINE:,} bytes, the limit of one text; "
                "give a part of it"
            )
    return bytes(held)


def stored_input() -> Iterator[bytes]:
    """The bytes of standard input, to be stored in a file; refused if no line of it ends."""
    waiting = offset = 0
    for chunk in ByteStream("-"):
        cut = chunk.rfind(b"\n") + 1
        offset += waiting + cut if cut else 0
        waiting = len(chunk) - cut if cut else waiting + len(chunk)
        _refuse_endless("standard input", waiting, offset)
        yield chunk


def _refuse_endless(name: str, waiting: int, offset: int) -> None:
    if waiting > ENDLESS * LONGEST_LINE:
        raise InputFileError(
            f"{name}: {waiting:,} bytes without a line feed from byte {offset:,} on; a line may "
            f"have {LONGEST_LINE:,}; is this a file of texts?"
        )


def transcoded(chunks: Iterable[bytes], name: str, encoding: str, offset: int) -> Iterator[bytes]:
    """The text of a file as UTF-8, for encodings whose bytes cannot be cut at line feeds.

    What stands before a fault is given before the error is raised.
    """
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    line = 1
    for chunk in itertools.chain(chunks, [b""]):  # the empty one lets the decoder see the end
        pending = len(decoder.getstate()[0])
        try:
            text = decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            before = error.object[: error.start].decode(encoding, "ignore")
            yield before.encode("utf-8", "surrogatepass")
            line += before.count("\n")
            reason, advice = undecodable(error, offset - pending, encoding, chunk)
            raise InputFileError(f"{name}, line {line}: {reason}; {advice}") from error
        offset += len(chunk)
        line += text.count("\n")
        yield text.encode("utf-8", "surrogatepass")


def decode_lines(block: bytes, encoding: str, offset: int) -> list[Line]:
    """The lines of a block of whole lines that begins at byte `offset` of its file."""
    lines: list[Line]
    try:
        lines = list(block.decode(encoding).split("\n"))
    except UnicodeDecodeError:
        lines = _line_by_line(block, encoding, offset)
    else:
        if encoding != "utf-8" and not block.isascii():
            pairs = zip(lines, block.split(b"\n"), strict=True)
            lines = [_not_utf8(line, raw, encoding) for line, raw in pairs]
    if block.endswith(b"\n"):
        lines.pop()
    return lines


def _line_by_line(block: bytes, encoding: str, offset: int) -> list[Line]:
    lines: list[Line] = []
    start = block[:1_000]
    wide = b"\0" in start  # perhaps UTF-16, whose characters are whole at the start of a block
    for raw in block.split(b"\n"):
        try:
            lines.append(raw.decode(encoding))
        except UnicodeDecodeError as error:
            before = raw[: error.start].decode(encoding, "replace")
            reason, advice = undecodable(error, offset, encoding, start if wide else raw)
            readable = raw.removesuffix(b"\r").decode(encoding, "backslashreplace")
            lines.append(UnreadableLineError(len(before) + 1, reason, advice, readable))
        offset += len(raw) + 1
    return lines


def _not_utf8(line: Line, raw: bytes, encoding: str) -> Line:
    """The line, unless it is UTF-8 beyond doubt in a file of another encoding.

    Most of them decode anything: such a row would turn into other characters in silence.
    """
    if raw.isascii():
        return line
    try:
        beyond = sum(character > "\x7f" for character in raw.decode())
    except UnicodeDecodeError:
        return line
    if beyond < BEYOND_DOUBT:
        return line
    return UnreadableLineError(
        1,
        f"the row is valid UTF-8 ({beyond} characters beyond ASCII) in a file read as {encoding}",
        f"save it as {encoding}, or read the whole file with --encoding utf-8",
        raw.removesuffix(b"\r").decode(),
    )


def _too_long(held: list[bytes], length: int, longest: int, encoding: str) -> UnreadableLineError:
    start = b"".join(held[:1])[:SHOWN_OF_LONGEST].decode(encoding, "replace")
    return UnreadableLineError(
        1,
        f"the line has {length:,} bytes; the limit is {longest:,}",
        "split the text into several lines",
        start + " ... (cut)",
    )
