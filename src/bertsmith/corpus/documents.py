"""Files of a corpus as blocks of whole lines or texts, cheap to cut and ready to be encoded."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from bertsmith.errors import InputFileError
from bertsmith.files.streams import ByteStream
from bertsmith.files.texts import Format, read_texts

Form = Literal["sentences", "paragraphs", "documents"]
FORMS: tuple[str, ...] = get_args(Form)
TABLES = ("csv", "tsv")
BLOCK = 1 << 21  # bytes of text that one worker takes at a time
LONGEST_LINE = 1 << 29  # bytes; beyond it a file is not text of lines (or a bomb)
# Encodings in which a line break is not always, or not only, the byte 0x0A.
WIDE = ("utf-16", "utf-32", "utf-7", "utf_16", "utf_32", "utf_7", "hz", "iso2022")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file of texts and how it is to be read.

    `form` says what a line is: "sentences" one sentence, blank lines between documents;
    "paragraphs" the same with lines that are split into sentences; "documents" a whole document.
    """

    path: Path
    kind: Format
    form: Form
    field: str | int | None
    encoding: str
    mark: int
    size: int

    @property
    def blank_lines_part(self) -> bool:
        """Whether blank lines, and not line ends, stand between documents."""
        return self.form != "documents"


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A run of lines (bytes of whole lines) or of texts, with its place in the file.

    `continued`: the first line goes on with the document that the block before ended in.
    `position`: how many stored bytes of the file were read by then.
    """

    source: Source
    lines: bytes = b""
    texts: tuple[str, ...] = ()
    encoding: str
    first_line: int
    first_byte: int
    continued: bool = False
    position: int = 0


def read_blocks(source: Source, size: int = BLOCK) -> Iterator[Block]:
    """The file as blocks of about `size` bytes, in order; memory grows with the longest line."""
    return _text_blocks(source, size) if source.kind in TABLES else _line_blocks(source, size)


def _line_blocks(source: Source, size: int) -> Iterator[Block]:
    stream = ByteStream(source.path)
    wide = source.encoding.startswith(WIDE)
    chunks: Iterator[bytes] = _transcoded(stream, source) if wide else stream
    encoding = "utf-8" if wide else source.encoding
    held: list[bytes] = []
    waiting, line, continued = 0, 1, False
    place = skip = 0 if wide else source.mark
    for chunk in chunks:
        held.append(chunk)
        waiting += len(chunk)
        if waiting - skip < size or b"\n" not in chunk:
            if waiting > LONGEST_LINE:
                raise _endless(source, line + sum(part.count(b"\n") for part in held))
            continue
        data = b"".join(held)[skip:]
        cut = data.rfind(b"\n") + 1
        held, waiting, skip = [data[cut:]], len(data) - cut, 0
        block = Block(
            source=source,
            lines=data[:cut],
            encoding=encoding,
            first_line=line,
            first_byte=place,
            continued=continued,
            position=stream.position,
        )
        yield block
        continued = source.blank_lines_part and not _ends_blank(block)
        line += block.lines.count(b"\n")
        place += cut
    if rest := b"".join(held)[skip:]:
        yield Block(
            source=source,
            lines=rest,
            encoding=encoding,
            first_line=line,
            first_byte=place,
            continued=continued,
            position=stream.position,
        )


def _ends_blank(block: Block) -> bool:
    """Whether the last line of a block is blank, as the encoder will see it."""
    last = block.lines[:-1].rpartition(b"\n")[2]
    return not last.decode(block.encoding, "replace").strip()


def _transcoded(stream: ByteStream, source: Source) -> Iterator[bytes]:
    """The text of a file as UTF-8, for encodings whose bytes cannot be cut at line breaks."""
    decoder = codecs.getincrementaldecoder(source.encoding)("strict")
    skip, offset, line = source.mark, 0, 1
    for chunk in stream:
        held = len(decoder.getstate()[0])
        try:
            text = decoder.decode(chunk[skip:])
        except UnicodeDecodeError as error:
            line += error.object[: error.start].decode(source.encoding, "ignore").count("\n")
            raise InputFileError(
                f"{source.path}, line {line}, byte {offset - held + error.start + skip}: "
                f"not valid {source.encoding} ({error.reason}); convert the file to UTF-8 first"
            ) from error
        offset += len(chunk)
        line += text.count("\n")
        skip = 0
        yield text.encode("utf-8", "replace")
    if decoder.getstate()[0]:
        raise InputFileError(f"{source.path} ends in the middle of a character; is it whole?")


def _text_blocks(source: Source, size: int) -> Iterator[Block]:
    """The texts of a table; its own reader names the place of every fault."""
    texts: list[str] = []
    length, place = 0, 1
    reader = read_texts(
        source.path, field=source.field, encoding=source.encoding, format=source.kind
    )
    for text in reader:
        texts.append(text)
        length += len(text) + 1
        if length >= size:
            position = int(source.size * (reader.share or 0.0))
            yield _text_block(source, texts, place, position)
            place += len(texts)
            texts, length = [], 0
    if texts:
        yield _text_block(source, texts, place, source.size)


def _text_block(source: Source, texts: list[str], place: int, position: int) -> Block:
    return Block(
        source=source,
        texts=tuple(texts),
        encoding="utf-8",
        first_line=place,
        first_byte=0,
        position=position,
    )


def _endless(source: Source, line: int) -> InputFileError:
    return InputFileError(
        f"{source.path}, line {line}: more than {LONGEST_LINE:,} bytes without a line break; "
        "is this a file of texts?"
    )
