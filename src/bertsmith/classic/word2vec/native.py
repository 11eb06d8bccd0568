"""The C++ kernel: which instruction sets it is built for, and how it is called."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertsmith.classic.word2vec.settings import Word2VecSettings
from bertsmith.classic.word2vec.tables import Schedule, Tables, WordWeights
from bertsmith.hardware.kernels.compiled import NativeKernel
from bertsmith.hardware.kernels.tiers import TIERS

_SOURCES = Path(__file__).parent / "kernel"
WORD_TIERS = {"avx512": TIERS["avx512-fp32"], "avx2": TIERS["avx2-fp32"]}  # best first
HOT_NODES = 256  # eight levels of the tree: few enough for a core's own cache
_MODELS = {"skipgram": 0, "cbow": 1}
_LOSSES = {"negative": 0, "hierarchical": 1, "nce": 2}
_POINTER, _DOUBLE, _WHOLE = ctypes.c_void_p, ctypes.c_double, ctypes.c_int32


class KernelJob(ctypes.Structure):
    """The struct `Job` of word2vec.cpp."""

    _fields_ = (
        *((name, _POINTER) for name in ("ids", "pieces", "inputs", "outputs", "keep", "noise")),
        *((name, _POINTER) for name in ("shift", "path_starts", "path_nodes", "path_codes")),
        ("seen", _POINTER),
        *((name, _DOUBLE) for name in ("rate", "least_rate", "total")),
        *((name, _WHOLE) for name in ("words", "stride", "window", "negatives")),
        *((name, _WHOLE) for name in ("model", "loss", "sums", "longest_path", "hot")),
    )


def word2vec_kernel(tier: str) -> NativeKernel:
    """The kernel of a tier, compiled or not."""
    return NativeKernel(
        name="word2vec",
        sources=_SOURCES,
        main="word2vec.cpp",
        tier=WORD_TIERS[tier],
        more=("-ffp-contract=fast",),
    )


@cache
def _opened(path: Path) -> ctypes.CDLL:
    """Open the library; calls release Python's lock while they run."""
    kernel = ctypes.CDLL(str(path))
    run = kernel.bertsmith_word2vec_run
    run.argtypes = [
        *(_POINTER, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint64),
        *(_POINTER, _POINTER, ctypes.c_int64),
    ]
    run.restype = ctypes.c_int64
    noise = kernel.bertsmith_word2vec_noise
    noise.argtypes = [_POINTER, ctypes.c_uint64, ctypes.c_int64, _POINTER]
    noise.restype = None
    return kernel


class NativeWordEngine:
    """Trains weights on chunks of text; any number of threads may call `run` at once."""

    def __init__(
        self,
        tables: Tables,
        weights: WordWeights,
        settings: Word2VecSettings,
        *,
        tier: str,
        threads: int = 1,
    ) -> None:
        """Of several `threads` each has copies of its own of the nodes next to the tree's root."""
        self.name = f"native-{tier}"
        self.seen = np.zeros(1, dtype=np.int64)
        self._kernel = _opened(word2vec_kernel(tier).library())
        schedule = Schedule.of(settings, tables.known)
        tree = tables.tree
        self._held = (tables, weights)  # the kernel reads and writes their memory
        self._job = KernelJob(
            ids=tables.ids.ctypes.data,
            pieces=tables.pieces.ctypes.data,
            inputs=weights.inputs.ctypes.data,
            outputs=weights.outputs.ctypes.data,
            keep=tables.keep.ctypes.data,
            noise=tables.noise.ctypes.data,
            shift=None if tables.shift is None else tables.shift.ctypes.data,
            path_starts=tree.starts.ctypes.data,
            path_nodes=tree.nodes.ctypes.data,
            path_codes=tree.codes.ctypes.data,
            seen=self.seen.ctypes.data,
            rate=schedule.start,
            least_rate=schedule.least,
            total=float(schedule.total),
            words=tables.words,
            stride=weights.inputs.shape[1],
            window=settings.window,
            negatives=settings.noise_words,
            model=_MODELS[settings.model],
            loss=_LOSSES[settings.loss],
            sums=settings.combine == "sum",
            longest_path=tree.longest,
            hot=min(HOT_NODES, tables.words - 1) if threads > 1 and tree.longest else 0,
        )

    def run(self, first: int, last: int, seed: int) -> tuple[float, float]:
        """Train on pieces first to last; the sum of losses and the number of predictions."""
        return self.traced(first, last, seed, None)[0]

    def traced(
        self, first: int, last: int, seed: int, trace: NDArray[np.int32] | None
    ) -> tuple[tuple[float, float], int]:
        """The same; windows are written to `trace` until it is full, and so many numbers of it.

        A window is: the rate (float32 bits), the middle word, M, N, M neighbors, their weights, N
        outputs, and their weights, below 0 where the label is 0.
        """
        result = np.zeros(2)
        room = 0 if trace is None else len(trace)
        place = None if trace is None else trace.ctypes.data
        length = self._kernel.bertsmith_word2vec_run(
            ctypes.byref(self._job), first, last, seed, result.ctypes.data, place, room
        )
        return (float(result[0]), float(result[1])), int(length)

    def noise_counts(self, draws: int, seed: int) -> NDArray[np.int64]:
        """How often each word comes in so many draws of noise (V,)."""
        counts = np.zeros(len(self._held[0].noise), dtype=np.int64)
        self._kernel.bertsmith_word2vec_noise(
            ctypes.byref(self._job), seed, draws, counts.ctypes.data
        )
        return counts
