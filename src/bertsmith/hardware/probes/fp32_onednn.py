"""fp32 `linear` through oneDNN instead of MKL: the same numbers, faster on some CPUs.

torch multiplies fp32 with MKL, which holds back on processors that are not Intel's; its x86 wheels
carry oneDNN as well, behind an operation that its compiler uses.
"""

from __future__ import annotations

import torch
from torch import Tensor

from bertsmith.errors import HardwareError
from bertsmith.hardware.probes.gemm import Product, measure_linear
from bertsmith.hardware.probes.job import Job, Measurement


def measure(job: Job) -> Measurement:
    """Rates of oneDNN's fp32 product."""
    if not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        raise HardwareError("this build of torch comes without oneDNN")
    return measure_linear(_prepare, job)


def multiply(x: Tensor, w: Tensor, bias: Tensor | None = None) -> Tensor:
    """x (T, D), w (F, D) with any strides, bias (F,) -> x w^T + bias (T, F)."""
    found: Tensor = torch.ops.mkldnn._linear_pointwise(x, w, bias, "none", [], "")
    return found


def _prepare(x: Tensor, w: Tensor) -> Product:
    def product() -> Tensor:
        return multiply(x, w)

    return product
