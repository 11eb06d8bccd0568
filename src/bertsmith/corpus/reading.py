"""All sources of a corpus as one stream of blocks, with a fingerprint of the text so far."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bertsmith.corpus.documents import Block, Source, read_blocks
from bertsmith.corpus.lines import OnError
from bertsmith.errors import InputFileError

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Piece:
    """A block on its way; `mark` stands for all text up to its end, `share` for the way done."""

    block: Block
    mark: str
    text_bytes: int
    share: float


class Reading(Iterator[Piece]):
    """The blocks of all sources in order; `digests` are of the sources read to their end."""

    def __init__(self, sources: Sequence[Source], block_bytes: int, on_error: OnError) -> None:
        self.digests: list[str] = []
        self._sources = sources
        self._block_bytes = block_bytes
        self._on_error = on_error
        self._pieces = self._read()

    def __next__(self) -> Piece:
        return next(self._pieces)

    def _read(self) -> Iterator[Piece]:
        total = max(1, sum(source.size for source in self._sources))
        chain = hashlib.sha256()
        before = 0
        for source in self._sources:
            digest = hashlib.sha256()
            found = False
            for block in read_blocks(source, self._block_bytes):
                found = True
                size = _update(digest, block)
                mark = chain.copy()
                mark.update(digest.digest())
                share = (before + block.position) / total
                yield Piece(block, mark.hexdigest(), size, share)
            if not found:
                self._refuse_empty(source)
            self.digests.append(digest.hexdigest())
            chain.update(digest.digest())
            before += source.size

    def _refuse_empty(self, source: Source) -> None:
        message = f"{source.path} is empty: it holds no text"
        if self._on_error == "stop":
            raise InputFileError(f"{message}; leave it out, or pass over it with --on-error skip")
        log.warning("%s", message)


def _update(digest: hashlib._Hash, block: Block) -> int:
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
