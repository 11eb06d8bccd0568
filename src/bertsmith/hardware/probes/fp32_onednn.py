"""fp32 `linear` through oneDNN instead of MKL: the same numbers, faster on some CPUs."""

from __future__ import annotations

from torch import Tensor

from bertsmith.errors import HardwareError
from bertsmith.hardware.gemm import has_onednn, onednn_linear
from bertsmith.hardware.probes.job import Measurement, ProbeJob
from bertsmith.hardware.probes.measuring import Product, measure_linear


def measure(job: ProbeJob) -> Measurement:
    """Rates of oneDNN's fp32 product."""
    if not has_onednn():
        raise HardwareError("this build of torch comes without oneDNN")
    return measure_linear(_prepare, job)


def _prepare(x: Tensor, w: Tensor) -> Product:
    return lambda: onednn_linear(x, w)
