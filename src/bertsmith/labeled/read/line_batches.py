"""Bytes to batches of lines: decoded by the block, and line by line where a block has a fault."""

from __future__ import annotations

import codecs
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bertsmith.errors import InputFileError
from bertsmith.files.encodings import likely_encodings

LONGEST_LINE = 1 << 25  # bytes; a text beyond it is no example but a library
KEPT_OF_LONGEST = 1_000
BEYOND_DOUBT = 8  # characters; so much GBK or Latin-1 is UTF-8 by chance once in ten million rows
# Encodings in which the byte 0x0A is not always, or not only, a line feed.
STATEFUL = ("utf-7", "utf_7", "hz", "iso2022")


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A line that could not be decoded, or is longer than any text."""

    column: int | None
    reason: str
    advice: str
    raw: str


Line = str | Unreadable
Batch = tuple[list[Line], bool]
"""Lines, and whether one of them may end with a carriage return."""


class LineBatches:
    """Cuts the bytes of a file into lines; `offset` is where they begin in it."""

    def __init__(self, name: str, encoding: str, offset: int) -> None:
        self.name = name
        self.encoding = encoding
        self._offset = offset  # of the block at hand
        self._first = True  # no line was given yet

    def of(self, chunks: Iterable[bytes]) -> Iterator[Batch]:
        """The lines of some chunks of bytes."""
        narrow = "\n".encode(self.encoding) == b"\n" and not self.encoding.startswith(STATEFUL)
        return self._narrow(chunks) if narrow else self._wide(chunks)

    def _narrow(self, chunks: Iterable[bytes]) -> Iterator[Batch]:
        """Lines of an encoding whose line feed is one byte: cut first, decoded by the block."""
        held: list[bytes] = []
        waiting = 0
        for chunk in chunks:
            cut = chunk.rfind(b"\n") + 1
            if not cut:
                if waiting <= LONGEST_LINE:
                    held.append(chunk)
                waiting += len(chunk)
                continue
            if waiting > LONGEST_LINE:
                end = chunk.index(b"\n") + 1
                yield [self._too_long(held, waiting + end)], False
                self._offset += waiting + end
                block = chunk[end:cut]
            else:
                block = b"".join([*held, chunk[:cut]])
            if block:
                yield self._decoded(block)
            self._first = False
            held, waiting = [chunk[cut:]], len(chunk) - cut
        if waiting > LONGEST_LINE:
            yield [self._too_long(held, waiting)], False
        elif last := b"".join(held):
            self._refuse_old_mac(last)
            yield self._decoded(last)

    def _decoded(self, block: bytes) -> Batch:
        try:
            text = block.decode(self.encoding)
        except UnicodeDecodeError:
            lines = self._line_by_line(block)
            returns = b"\r" in block
        else:
            lines = list(text.split("\n"))
            returns = "\r" in text
            if self.encoding != "utf-8" and not block.isascii():
                lines = [
                    self._not_utf8(*pair) for pair in zip(lines, block.split(b"\n"), strict=True)
                ]
        if block.endswith(b"\n"):
            lines.pop()
        self._offset += len(block)
        return lines, returns

    def _line_by_line(self, block: bytes) -> list[Line]:
        """The lines of a block that does not decode as a whole."""
        lines: list[Line] = []
        offset = self._offset
        for raw in block.split(b"\n"):
            try:
                lines.append(raw.decode(self.encoding))
            except UnicodeDecodeError as error:
                lines.append(self._undecodable(raw, error, offset))
            offset += len(raw) + 1
        return lines

    def _not_utf8(self, line: Line, raw: bytes) -> Line:
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
        return Unreadable(
            1,
            f"the row is valid UTF-8 ({beyond} characters beyond ASCII) in a file read as "
            f"{self.encoding}",
            f"save it as {self.encoding}, or read the whole file with --encoding utf-8",
            raw.removesuffix(b"\r").decode(),
        )

    def _undecodable(self, raw: bytes, error: UnicodeDecodeError, offset: int) -> Unreadable:
        before = raw[: error.start].decode(self.encoding, "replace")
        reason, advice = undecodable(error, offset, self.encoding, raw)
        shown = raw.removesuffix(b"\r").decode(self.encoding, "backslashreplace")
        return Unreadable(len(before) + 1, reason, advice, shown)

    def _too_long(self, held: list[bytes], length: int) -> Unreadable:
        start = b"".join(held[:1])[:KEPT_OF_LONGEST].decode(self.encoding, "replace")
        return Unreadable(
            1,
            f"the line has {length:,} bytes; {LONGEST_LINE:,} is the longest",
            "cut the text into parts, or close the quote that joins its lines",
            start + " ... (cut)",
        )

    def _refuse_old_mac(self, last: bytes) -> None:
        if self._first and last.count(b"\r") > 1 and b"\n" not in last:
            raise InputFileError(
                f"{self.name}, line 1, column 1: {last.count(13):,} carriage returns and no line "
                "feed: lines end as on old Macs; convert them first: tr '\\r' '\\n' < FILE > NEW"
            )

    def _wide(self, chunks: Iterable[bytes]) -> Iterator[Batch]:
        """Lines of an encoding that is decoded first; a fault in it ends the reading."""
        decoder = codecs.getincrementaldecoder(self.encoding)("strict")
        held = ""
        seen = 0
        for chunk in itertools.chain(chunks, [b""]):  # the empty one lets the decoder see the end
            pending = len(decoder.getstate()[0])
            try:
                held += decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError as error:
                held += error.object[: error.start].decode(self.encoding, "ignore")
                *lines, _ = held.split("\n")
                yield list(lines), True  # what stands before the fault is still read
                place = f"{self.name}, line {seen + len(lines) + 1}"
                reason, advice = undecodable(error, self._offset - pending, self.encoding, chunk)
                raise InputFileError(f"{place}: {reason}; {advice}") from error
            self._offset += len(chunk)
            *lines, held = held.split("\n")
            seen += len(lines)
            if len(held) > LONGEST_LINE:
                raise InputFileError(
                    f"{self.name}, line {seen + 1}, column 1: more than {LONGEST_LINE:,} "
                    "characters without a line feed; is this a file of examples?"
                )
            yield list(lines), True
        if held:
            yield [held], True


def undecodable(
    error: UnicodeDecodeError, offset: int, encoding: str, sample: bytes
) -> tuple[str, str]:
    """What is wrong with bytes that do not decode, and what to try."""
    bad = error.object[error.start : error.start + 1].hex()
    reason = f"byte 0x{bad} at byte {offset + error.start} is not valid {encoding} ({error.reason})"
    wide = encoding.startswith("utf-16")
    likely = [
        name
        for name in likely_encodings(sample)
        if name != encoding and (wide or not name.startswith("utf-16"))
    ]
    if not likely:
        return reason, "no common encoding fits: restore the text from its origin"
    return reason, (
        f"it decodes as {', '.join(likely)}: try --encoding {likely[0]} if all of the file is in "
        f"it, or save it as {encoding}"
    )
