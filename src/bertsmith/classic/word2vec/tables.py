"""All that training reads and changes: pieces of text, thresholds, noise, tree, weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertsmith.classic.stream.folder import WordStream
from bertsmith.classic.word2vec.huffman import HuffmanTree, huffman_tree
from bertsmith.classic.word2vec.noise import alias_table, keep_thresholds, noise_shares
from bertsmith.classic.word2vec.settings import LEAST_SHARE, Word2VecSettings
from bertsmith.errors import InputFileError
from bertsmith.random_keys import key_of

Matrix = NDArray[np.float32]
LONGEST_PIECE = 1_000  # words of a text that are read together
CHUNK = 50_000  # words per call of a kernel: a fraction of a second
_ROWS = 4_096
_LINE = 64  # bytes


@dataclass(frozen=True, slots=True, eq=False)
class WordWeights:
    """Input vectors (V, S) and output vectors (V, S), or (V - 1, S) of inner nodes of the tree.

    S is the dimension, rounded up to whole vectors of the processor; what lies beyond is 0.
    """

    inputs: Matrix
    outputs: Matrix
    dim: int

    @classmethod
    def zeros(cls, words: int, settings: Word2VecSettings, lanes: int) -> WordWeights:
        """WordWeights in aligned memory."""
        stride = -(-settings.dim // lanes) * lanes
        rows = words - 1 if settings.loss == "hierarchical" else words
        return cls(_aligned(words, stride), _aligned(rows, stride), settings.dim)

    @classmethod
    def start(cls, words: int, settings: Word2VecSettings, lanes: int) -> WordWeights:
        """Inputs uniform in +-0.5 / D, outputs 0."""
        made = cls.zeros(words, settings, lanes)
        draw = np.random.Generator(np.random.PCG64(settings.seed))
        for at in range(0, words, _ROWS):
            rows = made.inputs[at : at + _ROWS, : settings.dim]
            rows[:] = (draw.random(rows.shape, dtype=np.float32) - 0.5) / settings.dim
        return made


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """What training reads: the text in pieces, and what its words' counts decide.

    `ids` (N,) with 0 for unknown words, which are left out; word w has row w - 1 everywhere else.
    `pieces` are the places where pieces begin, and the end; `chunks` are numbers of pieces.
    """

    ids: NDArray[np.int32]
    pieces: NDArray[np.int64]
    chunks: NDArray[np.int64]
    cut_lines: int
    words: int
    known: int
    keep: NDArray[np.uint32]
    shares: NDArray[np.float64]
    noise: NDArray[np.uint32]
    shift: Matrix | None
    tree: HuffmanTree

    @classmethod
    def of(cls, stream: WordStream, settings: Word2VecSettings) -> Tables:
        """The tables of a stream; one with fewer than two different words is refused."""
        counts = np.asarray(stream.counts[1:], dtype=np.int64)
        if (counts > 0).sum() < 2:
            raise InputFileError(
                f"the text has {int((counts > 0).sum())} different words that are not left out; "
                "word2vec needs at least 2: give more text, or lower the minimum count"
            )
        pieces, cut = text_pieces(np.asarray(stream.starts))
        hierarchical = settings.loss == "hierarchical"
        shares = noise_shares(counts, settings.power)
        shift = None
        if settings.loss == "nce":
            with np.errstate(divide="ignore"):
                shift = -np.log(settings.noise_words * shares)
            shift = np.where(np.isfinite(shift), shift, 0.0).astype(np.float32)
        return cls(
            ids=np.ascontiguousarray(stream.ids, dtype=np.int32),
            pieces=pieces,
            chunks=_chunks(pieces),
            cut_lines=cut,
            words=len(counts),
            known=int(counts.sum()),
            keep=keep_thresholds(counts, settings.sample),
            shares=shares,
            noise=np.zeros((0, 2), np.uint32) if hierarchical else alias_table(shares),
            shift=shift,
            tree=huffman_tree(counts if hierarchical else counts[:0]),
        )


@dataclass(frozen=True, slots=True)
class Schedule:
    """A rate that falls linearly with the words of all epochs, down to a ten-thousandth."""

    start: float
    total: int

    @classmethod
    def of(cls, settings: Word2VecSettings, known: int) -> Schedule:
        """The schedule of a run over `known` words per epoch."""
        return cls(settings.start_rate, known * settings.epochs)

    @property
    def least(self) -> float:
        """Where it ends."""
        return self.start * LEAST_SHARE

    def rate(self, seen: int) -> float:
        """The rate after so many words."""
        return max(self.least, self.start * (1.0 - seen / self.total))


def chunk_seed(seed: int, epoch: int, chunk: int) -> int:
    """What the random numbers of a chunk come from, whatever thread works on it."""
    return key_of(epoch, chunk, seed=seed)


def text_pieces(
    starts: NDArray[np.int64], longest: int = LONGEST_PIECE
) -> tuple[NDArray[np.int64], int]:
    """Where pieces of at most `longest` words begin, and the end; how many lines were cut."""
    lengths = np.diff(starts)
    long = int((lengths > longest).sum())
    if not long:
        return np.ascontiguousarray(starts, dtype=np.int64), 0
    parts = np.maximum(1, -(-lengths // longest))
    first = np.repeat(starts[:-1], parts)
    number = np.arange(len(first)) - np.repeat(np.cumsum(parts) - parts, parts)
    return np.append(first + number * longest, starts[-1]).astype(np.int64), long


def _chunks(pieces: NDArray[np.int64]) -> NDArray[np.int64]:
    """Numbers of pieces, so that each chunk has about as many words."""
    marks = np.arange(0, int(pieces[-1]), CHUNK)
    first = np.unique(np.searchsorted(pieces, marks + int(pieces[0])))
    return np.append(first[first < len(pieces) - 1], len(pieces) - 1).astype(np.int64)


def _aligned(rows: int, stride: int) -> Matrix:
    """Zeros that begin on a cache line."""
    size = rows * stride
    memory = np.zeros(size + _LINE // 4, dtype=np.float32)
    first = (-memory.ctypes.data % _LINE) // 4
    return memory[first : first + size].reshape(rows, stride)
