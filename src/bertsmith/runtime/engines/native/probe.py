"""The probe of the native kernel, run in a child process: builds, compares with torch, races it."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import torch

from bertsmith.hardware.kernels.tiers import TIERS
from bertsmith.hardware.probes import Measurement, ProbeJob
from bertsmith.models.build import Model, build
from bertsmith.models.variants import bert
from bertsmith.runtime.engines.batches import RowBatch, pack_rows
from bertsmith.runtime.engines.engine import EagerEngine, Engine
from bertsmith.runtime.engines.native import encoder_kernel
from bertsmith.runtime.engines.native.engine import NativeEngine
from bertsmith.runtime.engines.workers import Workers, run_all

_SHAPES = {"384x3": (384, 12, 3), "768x1": (768, 12, 1)}  # hidden, heads, layers
_LENGTHS = (1, 2, 17, 31, 33, 64, 100, 250)
_ROUNDS = 4


def measure(job: ProbeJob) -> Measurement:
    """Error and rate of the kernel of tier `job.option` next to the eager engine."""
    torch.set_num_threads(job.threads)
    start = time.monotonic()
    encoder_kernel(job.option).library()
    built = time.monotonic() - start
    error = 0.0
    gflops, fp32_gflops = {}, {}
    for name, (hidden, heads, layers) in _SHAPES.items():
        model = _random_model(hidden, heads, layers)
        eager = EagerEngine(model.encoder, device=torch.device("cpu"), dtype=torch.float32)
        native = NativeEngine(model.encoder, model.spec, tier=job.option, streams=job.threads)
        error = max(error, _error(native, eager))
        lengths = [64] * (16 * job.threads)
        batches = pack_rows(_texts(lengths), budget=1024)
        flops = sum(lengths) * layers * (24 * hidden**2 + 4 * 64 * hidden)
        seconds, plain = _race(native, eager, batches)
        gflops[name] = flops / seconds / 1e9
        fp32_gflops[name] = flops / plain / 1e9
    return Measurement(
        gflops=gflops,
        fp32_gflops=fp32_gflops,
        error=error,
        detail=TIERS[job.option].about,
        facts={"build_seconds": round(built, 1)},
    )


def _random_model(hidden: int, heads: int, layers: int) -> Model:
    """A BERT with all weights random, biases and norms too: no term hides behind a zero."""
    spec = replace(
        bert.SPEC,
        vocab_size=997,
        hidden=hidden,
        embedding=hidden,
        heads=heads,
        layers=layers,
        feed_forward=4 * hidden,
    )
    rng = torch.Generator().manual_seed(1)
    model = build("bert", spec, generator=rng).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.empty_like(weight).normal_(0.0, 0.03, generator=rng))
    return model


def _texts(
    lengths: list[int] | tuple[int, ...],
) -> list[np.ndarray[tuple[int], np.dtype[np.int32]]]:
    rng = np.random.default_rng(2)
    return [rng.integers(0, 997, length, dtype=np.int32) for length in lengths]


def _error(native: Engine, eager: Engine) -> float:
    """The largest relative distance of one text's rows; NaN where the kernel gave NaN."""
    worst = 0.0
    for batch in pack_rows(_texts(_LENGTHS), budget=10_000):
        mine, true = native.hidden(batch), eager.hidden(batch)
        for first, last in zip(batch.starts, batch.starts[1:], strict=False):
            off = (mine[first:last] - true[first:last]).norm() / true[first:last].norm()
            worst = float(off) if not off <= worst else worst
    return worst


def _race(native: Engine, eager: Engine, batches: list[RowBatch]) -> tuple[float, float]:
    """Best seconds of both engines over the same batches, in turn."""
    best = [float("inf"), float("inf")]
    workers = Workers(native.streams)
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        for _ in run_all(
            batches,
            lambda batch: workers.submit(lambda: native.hidden(batch)),
            ahead=2 * native.streams,
        ):
            pass
        best[0] = min(best[0], time.perf_counter() - start)
        start = time.perf_counter()
        for batch in batches:
            eager.hidden(batch)
        best[1] = min(best[1], time.perf_counter() - start)
    workers.close()
    return best[0], best[1]
