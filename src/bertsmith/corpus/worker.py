"""Worker processes of a build: blocks of text in, token arrays and accounts out, in order."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import threading
from collections import Counter, deque
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing import connection, parent_process
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertsmith.corpus.reading import CorpusBlock, TextBlock, documents_of
from bertsmith.corpus.sources import OnError
from bertsmith.errors import HardwareError
from bertsmith.text.fast_wordpiece import SentenceEncoder, sentence_encoder
from bertsmith.text.safe_tokenizer import SafeTokenizer
from bertsmith.text.segment import segmenter as segmenter_named
from bertsmith.text.tokenizer_files import FILES, read_source

AHEAD = 2  # blocks that wait for a worker


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodeSettings:
    """What decides the tokens of a block, besides its text."""

    tokenizer: Path
    segmenter: str
    on_error: OnError
    wide: bool


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


class _Worker:
    """The encoder of this process, made when the process starts."""

    encoder: BlockEncoder | None = None


def start_worker(settings: EncodeSettings) -> None:
    """Prepare a worker process: one thread, deaf to Ctrl-C, gone when its parent is."""
    # Rust reads these when it first needs a thread; the pool already uses every core.
    os.putenv("TOKENIZERS_PARALLELISM", "false")
    os.putenv("RAYON_NUM_THREADS", "1")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends the work in good order
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    _Worker.encoder = BlockEncoder(settings)


def run_worker(block: TextBlock) -> EncodedBlock:
    """One block in a worker process."""
    if _Worker.encoder is None:
        raise RuntimeError("the worker was not started")
    return _Worker.encoder.encode(block)


def _leave_with_parent() -> None:
    """End this process when the parent is killed, so that no orphan keeps a core busy."""
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def encoded_blocks(
    blocks: Iterator[CorpusBlock], settings: EncodeSettings, workers: int
) -> Generator[tuple[CorpusBlock, EncodedBlock], None, None]:
    """Each block with its tokens, in the order of the input, whatever the number of workers."""
    first = list(itertools.islice(blocks, 2))
    if len(first) < 2:  # not worth a process
        encoder = BlockEncoder(settings)
        for one in first:
            yield one, encoder.encode(one.block)
        return
    pool = ProcessPoolExecutor(
        workers,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=start_worker,
        initargs=(settings,),
    )
    try:
        yield from _in_order(pool, itertools.chain(first, blocks), workers + AHEAD)
    except BrokenProcessPool as error:
        raise HardwareError(
            "a worker process ended unexpectedly, perhaps for lack of memory: run the same command "
            "again with fewer --workers, it resumes where it was (a script of your own must call "
            "this under `if __name__ == '__main__':`)"
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _in_order(
    pool: ProcessPoolExecutor, blocks: Iterator[CorpusBlock], most: int
) -> Iterator[tuple[CorpusBlock, EncodedBlock]]:
    waiting: deque[tuple[CorpusBlock, Future[EncodedBlock]]] = deque()
    for one in blocks:
        waiting.append((one, pool.submit(run_worker, one.block)))
        if len(waiting) >= most:
            done, result = waiting.popleft()
            yield done, result.result()
    while waiting:
        done, result = waiting.popleft()
        yield done, result.result()
