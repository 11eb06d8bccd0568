"""Measuring inside the child: BERT-shaped products, error against float64, best of several."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import linear

from bertsmith.hardware.probes import Measurement, ProbeJob

Product = Callable[[], Tensor]
Prepare = Callable[[Tensor, Tensor], Product]

SHAPES = ((2048, 384, 1536), (2048, 768, 3072))  # T rows, D in, F out: MiniLM's and BERT-base's
_RAGGED = ((1, 384, 1536), (37, 384, 1000))  # kernels go wrong at the edges of their tiles first
_ROUNDS = 25
_SECONDS = 0.6  # for both sides of one shape


def measure_linear(prepare: Prepare, job: ProbeJob) -> Measurement:
    """Rates and error of a path for x w^T, where `prepare(x (T, D), w (F, D))` packs once.

    Plain fp32 runs in turn with it, so that a busy machine slows both and the ratio stays fair.
    """
    torch.set_num_threads(job.threads)
    error = 0.0
    gflops, fp32_gflops = {}, {}
    with torch.inference_mode():
        for rows, width, out in _RAGGED:
            x, w = operands(rows, width, out)
            error = worse(error, relative_error(prepare(x, w)(), exact(x, w)))
        for rows, width, out in SHAPES:
            x, w = operands(rows, width, out)
            path = prepare(x, w)
            reference = exact(x, w)
            error = worse(error, relative_error(path(), reference))
            seconds, plain = race(path, lambda x=x, w=w: linear(x, w))  # type: ignore[misc]
            error = worse(error, relative_error(path(), reference))  # once more, warmed up
            flops = 2.0 * rows * width * out
            gflops[shape_name(rows, width, out)] = flops / seconds / 1e9
            fp32_gflops[shape_name(rows, width, out)] = flops / plain / 1e9
    return Measurement(gflops=gflops, fp32_gflops=fp32_gflops, error=error)


def operands(rows: int, width: int, out: int) -> tuple[Tensor, Tensor]:
    """Random rows (T, D) and weights (F, D) whose products have unit variance."""
    rng = torch.Generator().manual_seed(rows + width + out)
    x = torch.randn(rows, width, generator=rng)
    w = torch.randn(out, width, generator=rng) / width**0.5
    return x, w


def exact(x: Tensor, w: Tensor) -> Tensor:
    """The product in float64: (T, D), (F, D) -> (T, F)."""
    return x.double() @ w.double().t()


def relative_error(result: Tensor, reference: Tensor) -> float:
    """The largest difference, relative to the largest true value; NaN stays NaN."""
    difference = (result.detach().cpu().double() - reference).abs().max()
    return float(difference / reference.abs().max())


def worse(first: float, second: float) -> float:
    """The larger error, where NaN is the largest of all."""
    return second if second != second or second > first else first


def race(path: Product, plain: Product) -> tuple[float, float]:
    """Best seconds of two products run in turn: at least 3 rounds unless one is very slow."""
    best = [float("inf"), float("inf")]
    start = time.perf_counter()
    for turn in range(_ROUNDS):
        for which, run in enumerate((path, plain)):
            before = time.perf_counter()
            run()
            best[which] = min(best[which], time.perf_counter() - before)
        spent = time.perf_counter() - start
        if (turn >= 2 and spent > _SECONDS) or spent > 4 * _SECONDS:
            break
    return best[0], best[1]


def shape_name(rows: int, width: int, out: int) -> str:
    """The name of a shape in findings."""
    return f"{rows}x{width}x{out}"
