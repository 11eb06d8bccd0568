"""The work of a build on one block: text in, token arrays and accounts out."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertsmith.corpus.reading import CorpusBlock, TextBlock, documents_of
from bertsmith.corpus.sources import OnError
from bertsmith.files.pool import Pool
from bertsmith.text.fast_wordpiece import SentenceEncoder, sentence_encoder
from bertsmith.text.safe_tokenizer import SafeTokenizer
from bertsmith.text.segment import segmenter as segmenter_named
from bertsmith.text.tokenizer_files import FILES, read_source


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodeSettings:
    """What decides the tokens of a block, besides its text."""

    tokenizer: Path
    segmenter: str
    on_error: OnError
    wide: bool

    def open(self) -> Callable[[TextBlock], EncodedBlock]:
        """What encodes blocks, with its memory of words from block to block."""
        return BlockEncoder(self).encode


@dataclass(slots=True, kw_only=True)
class EncodedBlock:
    """Arrays as bytes: tokens, word starts with their case (see `Corpus`), tokens of each
    sentence, sentences that start documents; and what was counted on the way."""

    tokens: bytes
    words: bytes
    lengths: bytes
    starts: bytes
    characters: int
    empty: int
    skipped: int
    examples: list[str]
    surrogates: int
    unknown: Counter[str] = field(default_factory=Counter)


class BlockEncoder:
    """Encodes blocks with one tokenizer; holds its memory of words from block to block."""

    def __init__(self, settings: EncodeSettings) -> None:
        self._settings = settings
        self._kind = np.dtype("<u4" if settings.wide else "<u2")
        folder = settings.tokenizer
        files = {name: (folder / name).read_bytes() for name in FILES if (folder / name).exists()}
        self._encoder = encoder_of(files, settings.segmenter)

    def encode(self, block: TextBlock) -> EncodedBlock:
        """The tokens of a block; sentences without any are left out and counted."""
        documents = documents_of(block, self._settings.on_error)
        encoded = self._encoder.encode(documents.sentences)
        filled = encoded.lengths > 0
        places = np.concatenate([[0], np.cumsum(filled)])  # number among those with tokens
        return EncodedBlock(
            tokens=encoded.ids.astype(self._kind).tobytes(),
            words=word_codes(encoded.starts, encoded.cases).tobytes(),
            lengths=encoded.lengths[filled].astype("<i8").tobytes(),
            starts=places[np.array(documents.starts, dtype=np.int64)].astype("<i8").tobytes(),
            characters=sum(map(len, documents.sentences)),
            empty=int(len(filled) - filled.sum()),
            skipped=documents.skipped,
            examples=documents.examples,
            surrogates=documents.surrogates,
            unknown=encoded.unknown,
        )


def word_codes(starts: NDArray[np.bool_], cases: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """(T,) 0 inside of a word, at its first token 1 and twice its case: what words.bin holds."""
    return np.where(starts, 1 + 2 * cases, 0).astype(np.uint8)


def encoder_of(files: Mapping[str, bytes], segmenter: str) -> SentenceEncoder:
    """The sentence encoder of a tokenizer's files; `segmenter` is "character" or "jieba"."""
    source = read_source(files)
    words = None if segmenter == "character" else segmenter_named(segmenter)
    return sentence_encoder(SafeTokenizer(source.state, source.controls), words)


def encoded_blocks(
    blocks: Iterable[CorpusBlock], settings: EncodeSettings, pool: Pool
) -> Generator[tuple[CorpusBlock, EncodedBlock], None, None]:
    """Each block with its tokens, in the order of the input, whatever the pool."""
    waiting: deque[CorpusBlock] = deque()

    def texts() -> Iterator[TextBlock]:
        for one in blocks:
            waiting.append(one)
            yield one.block

    with closing(pool.map_ordered(settings, texts())) as results:
        for encoded in results:
            yield waiting.popleft(), encoded
