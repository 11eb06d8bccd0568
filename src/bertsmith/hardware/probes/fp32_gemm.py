"""Plain fp32 in torch: what every other path is compared with."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor
from torch.nn.functional import linear

from bertsmith.hardware.probes.job import Job, Measurement
from bertsmith.hardware.probes.measuring import Product, measure_linear


def measure(job: Job) -> Measurement:
    """Rates of fp32 `linear`, which is its own measure."""
    found = measure_linear(_prepare, job)
    return replace(found, fp32_gflops=found.gflops)


def _prepare(x: Tensor, w: Tensor) -> Product:
    return lambda: linear(x, w)
