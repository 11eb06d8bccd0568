"""The probe of the kernel, run in a child process: builds it, compares its steps with torch."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from bertsmith.classic.stream.folder import WordStream
from bertsmith.classic.word2vec.native import WORD_TIERS, NativeWordEngine, word2vec_kernel
from bertsmith.classic.word2vec.settings import Word2VecSettings
from bertsmith.classic.word2vec.tables import Tables, WordWeights
from bertsmith.classic.word2vec.torch_engine import StepRows, TorchWordEngine, train_step
from bertsmith.hardware.probes import Measurement, ProbeJob

_WORDS, _LINES, _LENGTH = 2_000, 1_500, 20
_WINDOWS = 1 << 14  # numbers of a trace
_ROUNDS = 3
_HEAD = 4


def measure(job: ProbeJob) -> Measurement:
    """Error against the same steps in float64, and the rate next to the torch engine."""
    torch.set_num_threads(1)
    start = time.monotonic()
    word2vec_kernel(job.option).library()
    built = time.monotonic() - start
    stream = _random_text()
    modes = [
        Word2VecSettings(model=model, loss=loss, dim=100, sample=0.0)
        for model in ("skipgram", "cbow")
        for loss in ("negative", "hierarchical", "nce")
    ]
    error = max(_error(stream, settings, job.option) for settings in modes)
    settings = modes[0]
    tables = Tables.of(stream, settings)
    pieces = len(tables.pieces) - 1
    weights = WordWeights.start(tables.words, settings, WORD_TIERS[job.option].lanes)
    native = NativeWordEngine(tables, weights, settings, tier=job.option)
    plain = TorchWordEngine(tables, WordWeights.start(tables.words, settings, 1), settings)
    best = [float("inf"), float("inf")]
    for turn in range(_ROUNDS):
        for which, run in enumerate((native.run, plain.run)):
            before = time.perf_counter()
            _, pairs = run(0, pieces, turn)
            best[which] = min(best[which], time.perf_counter() - before)
    flops = pairs * 6 * settings.dim * (settings.noise_words + 1)
    return Measurement(
        gflops={"skipgram": flops / best[0] / 1e9},
        fp32_gflops={"skipgram": flops / best[1] / 1e9},
        error=error,
        detail=f"{_LINES * _LENGTH / best[0]:,.0f} words per second and thread",
        facts={"build_seconds": round(built, 1)},
    )


def _random_text() -> WordStream:
    """A text whose words are distributed as those of a language."""
    draw = np.random.Generator(np.random.PCG64(1))
    drawn = np.minimum(draw.zipf(1.3, _LINES * _LENGTH), _WORDS).astype(np.int32)
    _, places, counts = np.unique(drawn, return_inverse=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return WordStream(
        ids=(rank[places] + 1).astype(np.int32),
        starts=np.arange(_LINES + 1, dtype=np.int64) * _LENGTH,
        documents=np.array([0, _LINES], dtype=np.int64),
        words=("<unk>", *(str(number) for number in range(len(order)))),
        counts=np.append(0, counts[order]).astype(np.int64),
    )


def _error(stream: WordStream, settings: Word2VecSettings, tier: str) -> float:
    """The largest difference of a weight after some windows, relative to the largest change."""
    tables = Tables.of(stream, settings)
    weights = WordWeights.start(tables.words, settings, WORD_TIERS[tier].lanes)
    inputs = torch.from_numpy(weights.inputs.copy()).double()
    outputs = torch.from_numpy(weights.outputs.copy()).double()
    first = inputs.clone()
    engine = NativeWordEngine(tables, weights, settings, tier=tier)
    trace = np.zeros(_WINDOWS, dtype=np.int32)
    _, length = engine.traced(0, 8, 3, trace)
    shift = None if tables.shift is None else torch.from_numpy(tables.shift).double()
    for window in traced_windows(trace[:length]):
        for rows in _steps(window, settings):
            train_step(inputs, outputs, rows, window.rate, shift)
    largest = float((inputs - first).abs().max())
    off = max(
        float((torch.from_numpy(mine).double() - true).abs().max())
        for mine, true in ((weights.inputs, inputs), (weights.outputs, outputs))
    )
    return off / largest


def _steps(window: TracedWindow, settings: Word2VecSettings) -> list[StepRows]:
    """The steps of a window: one, or one for every two neighbors with hierarchical softmax."""
    count = len(window.neighbors)
    if settings.model == "cbow":
        weights = torch.from_numpy(window.weights.astype(np.float64))
        owners = torch.zeros(count, dtype=torch.int64)
        return [_rows(window, slice(None), owners, weights / weights.sum(), weights, 1)]
    size = 2 if settings.loss == "hierarchical" else count
    steps = []
    for at in range(0, count, size):
        part = slice(at, at + size)
        weights = torch.from_numpy(window.weights[part].astype(np.float64))
        ones = torch.ones_like(weights)
        steps.append(_rows(window, part, torch.arange(len(ones)), ones, ones, weights))
    return steps


def _rows(
    window: TracedWindow,
    part: slice,
    owners: torch.Tensor,
    shares: torch.Tensor,
    backs: torch.Tensor,
    times: torch.Tensor | int,
) -> StepRows:
    count = int(owners.max()) + 1
    sizes = torch.from_numpy(window.sizes.astype(np.float64)).expand(count, -1)
    if isinstance(times, torch.Tensor):
        sizes = sizes * times[:, None]
    outputs = torch.from_numpy(window.outputs.astype(np.int64))
    return StepRows(
        members=torch.from_numpy(window.neighbors[part].astype(np.int64)),
        owners=owners,
        shares=shares,
        backs=backs,
        targets=outputs.expand(count, -1),
        signs=torch.from_numpy(window.signs.astype(np.float64)).expand(count, -1),
        sizes=sizes,
    )


@dataclass(frozen=True, slots=True, eq=False)
class TracedWindow:
    """One window: `neighbors` (M,) and how often each occurs, `outputs` (N,) with `signs` (1 for
    what is right, -1 for what is wrong) and how often each was drawn.
    """

    rate: float
    center: int
    neighbors: NDArray[np.int32]
    weights: NDArray[np.int32]
    outputs: NDArray[np.int32]
    signs: NDArray[np.int32]
    sizes: NDArray[np.int32]


def traced_windows(trace: NDArray[np.int32]) -> Iterator[TracedWindow]:
    """The windows of a trace."""
    at = 0
    while at < len(trace):
        rate = float(trace[at : at + 1].view(np.float32)[0])
        center, m, n = (int(number) for number in trace[at + 1 : at + _HEAD])
        at += _HEAD
        neighbors, weights = trace[at : at + m], trace[at + m : at + 2 * m]
        at += 2 * m
        outputs, signed = trace[at : at + n], trace[at + n : at + 2 * n]
        at += 2 * n
        yield TracedWindow(
            rate, center, neighbors, weights, outputs, np.sign(signed), np.abs(signed)
        )
