"""int8 times int8 in torch's integer product, a scale for each row and each column."""

from __future__ import annotations

import torch
from torch import Tensor

from bertsmith.errors import HardwareError
from bertsmith.hardware.probes.job import Measurement, ProbeJob
from bertsmith.hardware.probes.measuring import Product, measure_linear


def measure(job: ProbeJob) -> Measurement:
    """Rates of `torch._int_mm` with the scaling of its result; activations quantized before."""
    integer_product = getattr(torch, "_int_mm", None)  # private, and may go
    if integer_product is None:
        raise HardwareError("this torch has no integer product")

    def prepare(x: Tensor, w: Tensor) -> Product:
        row_scales = x.abs().amax(dim=1, keepdim=True) / 127  # (T, 1)
        column_scales = w.abs().amax(dim=1) / 127  # (F,)
        x8 = (x / row_scales).round().to(torch.int8)
        w8 = (w / column_scales[:, None]).round().to(torch.int8).t()  # (D, F)
        return lambda: integer_product(x8, w8).float().mul_(row_scales).mul_(column_scales)

    return measure_linear(prepare, job)
