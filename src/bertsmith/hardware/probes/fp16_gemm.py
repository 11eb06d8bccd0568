"""fp16 `linear` in torch on the CPU: right nearly everywhere, fast on few machines."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import linear

from bertsmith.hardware.probes.job import Job, Measurement
from bertsmith.hardware.probes.measuring import Product, measure_linear


def measure(job: Job) -> Measurement:
    """Rates of fp16 `linear`."""
    return measure_linear(_prepare, job)


def _prepare(x: Tensor, w: Tensor) -> Product:
    x16, w16 = x.to(torch.float16), w.to(torch.float16)
    return lambda: linear(x16, w16)
