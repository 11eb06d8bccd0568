"""The sources of a corpus as one stream of blocks, and each block as documents of sentences."""

from __future__ import annotations

import hashlib
import itertools
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from bertsmith.corpus.sources import CorpusSource, OnError
from bertsmith.errors import InputFileError
from bertsmith.files.encodings import splits_at_line_feeds
from bertsmith.files.faults import BadRowError
from bertsmith.files.lines import LONGEST_LINE, decode_lines, transcoded
from bertsmith.files.streams import ByteStream
from bertsmith.labeled.texts import json_text, replace_surrogates
from bertsmith.text.sentences import split_sentences

log = logging.getLogger(__name__)

BLOCK = 1 << 21  # bytes of text that one worker takes at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class TextBlock:
    """A run of lines (bytes of whole lines) or of texts, with its place in the file.

    `continued`: the first line belongs to the document that the block before ended in.
    `position`: how many stored bytes of the file were read by then.
    """

    source: CorpusSource
    lines: bytes = b""
    texts: tuple[str, ...] = ()
    encoding: str = "utf-8"
    first_line: int = 1
    first_byte: int = 0
    continued: bool = False
    position: int = 0


@dataclass(frozen=True, slots=True)
class CorpusBlock:
    """A block of a corpus; `mark` is the hash of all text up to its end, `share` the progress."""

    block: TextBlock
    mark: str
    text_bytes: int
    share: float


class CorpusReader(Iterator[CorpusBlock]):
    """The blocks of all sources in order; `digests` are of the sources read to their end."""

    def __init__(
        self, sources: Sequence[CorpusSource], block_bytes: int, on_error: OnError
    ) -> None:
        self.digests: list[str] = []
        self._sources = sources
        self._block_bytes = block_bytes
        self._on_error = on_error
        self._blocks = self._read()

    def __next__(self) -> CorpusBlock:
        return next(self._blocks)

    def _read(self) -> Iterator[CorpusBlock]:
        total = max(1, sum(source.size for source in self._sources))
        chain = hashlib.sha256()
        before = 0
        for source in self._sources:
            digest = hashlib.sha256()
            empty = True
            for block in read_blocks(source, self._block_bytes):
                empty = False
                size = _update(digest, block)
                mark = chain.copy()
                mark.update(digest.digest())
                share = (before + block.position) / total
                yield CorpusBlock(block, mark.hexdigest(), size, share)
            if empty:
                self._refuse_empty(source)
            self.digests.append(digest.hexdigest())
            chain.update(digest.digest())
            before += source.size

    def _refuse_empty(self, source: CorpusSource) -> None:
        message = f"{source.path} is empty: it holds no text"
        if self._on_error == "stop":
            raise InputFileError(f"{message}; leave it out, or pass over it with --on-error skip")
        log.warning("%s", message)


def _update(digest: hashlib._Hash, block: TextBlock) -> int:
    """Add the text of a block to a running hash; its length in bytes."""
    if not block.texts:
        digest.update(block.lines)
        return len(block.lines)
    size = 0
    for text in block.texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
        size += len(data)
    return size


def read_blocks(source: CorpusSource, size: int = BLOCK) -> Iterator[TextBlock]:
    """The file as blocks of about `size` bytes, in order; memory grows with the longest line."""
    return _line_blocks(source, size) if source.by_lines else _text_blocks(source, size)


def _line_blocks(source: CorpusSource, size: int) -> Iterator[TextBlock]:
    stream = ByteStream(source.path)
    encoding = source.encoding if splits_at_line_feeds(source.encoding) else "utf-8"
    line, place, continued = 1, source.mark, False
    for data in _whole_lines(_unmarked(stream, source), source, size):
        yield TextBlock(
            source=source,
            lines=data,
            encoding=encoding,
            first_line=line,
            first_byte=place,
            continued=continued,
            position=stream.position,
        )
        continued = source.blank_lines_part and not _ends_blank(data, encoding)
        line += data.count(b"\n")
        place += len(data)


def _unmarked(stream: ByteStream, source: CorpusSource) -> Iterator[bytes]:
    """Chunks whose lines end with the byte 0x0A, without the byte order mark."""
    start = b""
    for chunk in stream:
        start += chunk
        if len(start) >= source.mark:
            break
    chunks = itertools.chain([start[source.mark :]], stream)
    if splits_at_line_feeds(source.encoding):
        return chunks
    return transcoded(chunks, str(source.path), source.encoding, source.mark)


def _whole_lines(chunks: Iterator[bytes], source: CorpusSource, size: int) -> Iterator[bytes]:
    held: list[bytes] = []
    waiting, line = 0, 1
    for chunk in chunks:
        held.append(chunk)
        waiting += len(chunk)
        if waiting < size or b"\n" not in chunk:
            if waiting > LONGEST_LINE:
                line += sum(part.count(b"\n") for part in held)
                raise InputFileError(
                    f"{source.path}, line {line}: more than {LONGEST_LINE:,} bytes without a line "
                    "feed, which is the limit; split the text into several lines"
                )
            continue
        data = b"".join(held)
        cut = data.rfind(b"\n") + 1
        yield data[:cut]
        line += data.count(b"\n")
        held, waiting = [data[cut:]], len(data) - cut
    if rest := b"".join(held):
        yield rest


def _ends_blank(lines: bytes, encoding: str) -> bool:
    """Whether the last line of a block is blank, as the encoder will see it."""
    last = lines[:-1].rpartition(b"\n")[2]
    return not last.decode(encoding, "replace").strip()


def _text_blocks(source: CorpusSource, size: int) -> Iterator[TextBlock]:
    """The texts of a table."""
    texts: list[str] = []
    length = 0
    reader = source.texts()
    for text in reader:
        texts.append(text)
        length += len(text) + 1
        if length >= size:
            position = int(source.size * (reader.share or 0.0))
            yield TextBlock(source=source, texts=tuple(texts), position=position)
            texts, length = [], 0
    if texts:
        yield TextBlock(source=source, texts=tuple(texts), position=source.size)


MOST_EXAMPLES = 5  # skipped lines of a block whose place and reason are recorded


@dataclass(slots=True)
class Documents:
    """Sentences in order; `starts` are the numbers of those that begin a document.

    `skipped` lines were left out, the first of them are in `examples`; `surrogates` were replaced.
    """

    sentences: list[str] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    skipped: int = 0
    examples: list[str] = field(default_factory=list)
    surrogates: int = 0


def documents_of(block: TextBlock, on_error: OnError) -> Documents:
    """The sentences of a block, each without surrounding space, and where documents begin."""
    source = block.source
    documents = Documents()
    if block.texts or source.spec.format == "jsonl":
        for text in block.texts or _json_texts(block, on_error, documents):
            documents.starts.append(len(documents.sentences))
            clean, replaced = replace_surrogates(text)
            documents.surrogates += replaced
            for line in clean.split("\n"):
                documents.sentences.extend(split_sentences(line))
        return documents
    starting = not block.continued
    for _, line in _lines(block, on_error, documents):
        if not (stripped := line.strip()):
            starting = True
        elif source.form == "documents":
            documents.starts.append(len(documents.sentences))
            documents.sentences.extend(split_sentences(stripped))
        else:
            if starting:
                documents.starts.append(len(documents.sentences))
                starting = False
            if source.form == "sentences":
                documents.sentences.append(stripped)
            else:
                documents.sentences.extend(split_sentences(stripped))
    return documents


def _lines(block: TextBlock, on_error: OnError, documents: Documents) -> Iterator[tuple[int, str]]:
    """Each line that can be decoded, with its number."""
    lines = decode_lines(block.lines, block.encoding, block.first_byte)
    for number, line in enumerate(lines, start=block.first_line):
        if isinstance(line, str):
            yield number, line
        else:
            _leave_out(line, block, number, on_error, documents)


def _json_texts(block: TextBlock, on_error: OnError, documents: Documents) -> Iterator[str]:
    for number, line in _lines(block, on_error, documents):
        if not line.strip():
            continue
        try:
            yield json_text(line, block.source.key)
        except BadRowError as fault:
            _leave_out(fault, block, number, on_error, documents)


def _leave_out(
    fault: BadRowError, block: TextBlock, number: int, on_error: OnError, documents: Documents
) -> None:
    """Skip a line, or end the build at it."""
    error = fault.error(str(block.source.path), number)
    if on_error == "stop":
        way = "--on-error skip leaves such lines out and counts them"
        raise InputFileError(f"{error}; {way}") from fault
    documents.skipped += 1
    if len(documents.examples) < MOST_EXAMPLES:
        documents.examples.append(str(error))
