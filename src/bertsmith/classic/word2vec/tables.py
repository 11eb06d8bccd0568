"""All that training reads and changes: pieces of text, thresholds, noise, tree, weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertsmith.classic.stream.folder import WordStream
from bertsmith.classic.word2vec.settings import LEAST_SHARE, Word2VecSettings
from bertsmith.errors import InputFileError
from bertsmith.random_keys import key_of

Matrix = NDArray[np.float32]
LONGEST_PIECE = 1_000  # words of a text that are read together
CHUNK = 50_000  # words per call of a kernel: a fraction of a second
_ROWS = 4_096
_LINE = 64  # bytes
Floats = NDArray[np.float64]
_ALL = (1 << 32) - 1


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


def noise_shares(counts: NDArray[np.int64], power: float) -> Floats:
    """The probability of each word as noise (V,): its count to a power."""
    weights = np.asarray(counts, dtype=np.float64) ** power
    weights[np.asarray(counts) == 0] = 0.0
    shares: Floats = weights / weights.sum()
    return shares


def alias_table(shares: Floats) -> NDArray[np.uint32]:
    """Walker's alias table (V, 2): a drawn place stays below the threshold, else the other word.

    Two draws of 32 bits give a word, exactly to 2^-32 (Vose 1991).
    """
    size = len(shares)
    scaled = (shares * size).tolist()
    others = list(range(size))
    small = [word for word, share in enumerate(scaled) if share < 1.0]
    large = [word for word, share in enumerate(scaled) if share >= 1.0]
    while small and large:
        poor, rich = small.pop(), large[-1]
        others[poor] = rich
        scaled[rich] -= 1.0 - scaled[poor]
        if scaled[rich] < 1.0:
            small.append(large.pop())
    for word in (*small, *large):  # 1 but for rounding
        scaled[word], others[word] = 1.0, word
    thresholds = np.clip(np.round(np.array(scaled) * 2.0**32), 0, _ALL)
    return np.stack([thresholds, np.array(others)], axis=1).astype(np.uint32)


def keep_thresholds(counts: NDArray[np.int64], sample: float) -> NDArray[np.uint32]:
    """The largest draw of 32 bits with which a word stays in the text (V,).

    p = (sqrt(f / t) + 1) t / f, f the count and t = `sample` x all words; 0 keeps every word.
    """
    if not sample:
        return np.full(len(counts), _ALL, dtype=np.uint32)
    limit = sample * float(np.sum(counts))
    with np.errstate(divide="ignore"):
        ratio = limit / np.asarray(counts, dtype=np.float64)
    shares = np.minimum(np.sqrt(ratio) + ratio, 1.0)
    return np.where(shares >= 1.0, _ALL, np.round(shares * 2.0**32)).astype(np.uint32)


@dataclass(frozen=True, slots=True, eq=False)
class HuffmanTree:
    """The tree of hierarchical softmax: the path of each word, short for frequent ones.

    `nodes` and `codes` of word w are from `starts[w]` to `starts[w + 1]`; `starts` (V + 1,). Nodes
    are numbers of inner nodes, 0 to V - 2, from the root, which is V - 2; codes are 0 or 1.
    p(w | h) is the product over the nodes u of the path of w of sigmoid((1 - 2 code) h.u), so that
    the probabilities of all words add up to 1.
    """

    starts: NDArray[np.int64]
    nodes: NDArray[np.int32]
    codes: NDArray[np.int8]

    @property
    def longest(self) -> int:
        """Nodes of the longest path."""
        return int(np.diff(self.starts).max(initial=0))

    def path(self, word: int) -> tuple[NDArray[np.int32], NDArray[np.int8]]:
        """Nodes and codes of one word."""
        part = slice(self.starts[word], self.starts[word + 1])
        return self.nodes[part], self.codes[part]


def huffman_tree(counts: NDArray[np.int64]) -> HuffmanTree:
    """The tree of words by counts (V,), in O(V) if they fall: two queues, of words and of nodes."""
    size = len(counts)
    if size < 2:
        return HuffmanTree(
            np.zeros(size + 1, dtype=np.int64), np.zeros(0, np.int32), np.zeros(0, np.int8)
        )
    parents, codes = _merged(counts)
    above = parents.tolist()
    levels = [0] * (2 * size - 1)
    for node in range(2 * size - 3, -1, -1):  # a parent has a larger number
        levels[node] = levels[above[node]] + 1
    depths = np.array(levels, dtype=np.int64)
    starts = np.zeros(size + 1, dtype=np.int64)
    np.cumsum(depths[:size], out=starts[1:])
    flat_nodes = np.empty(starts[-1], dtype=np.int32)
    flat_codes = np.empty(starts[-1], dtype=np.int8)
    words = np.arange(size)
    here = words.copy()
    for back in range(1, int(depths[:size].max()) + 1):  # from the leaves to the root
        places = starts[words + 1] - back
        flat_nodes[places] = parents[here] - size
        flat_codes[places] = codes[here]
        here = parents[here]
        on = depths[here] > 0
        words, here = words[on], here[on]
    return HuffmanTree(starts, flat_nodes, flat_codes)


def _merged(counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
    """Parent and code of each word and inner node; the root, the last node, has neither."""
    size = len(counts)
    weights = [*np.asarray(counts).tolist(), *[0] * (size - 1)]
    parents, codes = [0] * (2 * size - 1), [0] * (2 * size - 1)
    order = np.argsort(-np.asarray(counts), kind="stable").tolist()  # of a part they may rise
    left, node = size - 1, size  # the next of either queue; words from the rarest on

    for made in range(size, 2 * size - 1):
        pair = []
        for _ in range(2):
            # Of equal weights the word comes first, so that paths stay short.
            if left >= 0 and (node >= made or weights[order[left]] <= weights[node]):
                pair.append(order[left])
                left -= 1
            else:
                pair.append(node)
                node += 1
        first, second = pair
        weights[made] = weights[first] + weights[second]
        parents[first] = parents[second] = made
        codes[second] = 1
    return np.array(parents, dtype=np.int64), np.array(codes, dtype=np.int8)
