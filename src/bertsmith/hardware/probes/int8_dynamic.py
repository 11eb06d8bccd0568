"""int8 weights with activations quantized on the fly, by torch's quantized engines."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from bertsmith.errors import HardwareError
from bertsmith.hardware.probes.job import Measurement, ProbeJob
from bertsmith.hardware.probes.measuring import Product, measure_linear

_ENGINES = ("x86", "fbgemm", "qnnpack")  # the first that this build has
# FBGEMM without VNNI adds pairs of products in 16 bits; one bit less keeps them from overflowing.
_REDUCED = ("x86", "fbgemm")


def measure(job: ProbeJob) -> Measurement:
    """Rates of a dynamically quantized `linear`; `job.option` names the engine."""
    wanted = (job.option,) if job.option else _ENGINES
    supported = torch.backends.quantized.supported_engines
    engine = next((name for name in wanted if name in supported), None)
    if engine is None:
        raise HardwareError(f"torch has no quantized engine {' or '.join(wanted)} here")
    if not hasattr(torch, "quantize_per_channel"):
        raise HardwareError("this torch has no quantized tensors")
    torch.backends.quantized.engine = engine
    warnings.filterwarnings("ignore", message=".*quantize_per", category=UserWarning)

    def prepare(x: Tensor, w: Tensor) -> Product:
        scales = w.abs().amax(dim=1) / 127  # (F,)
        zeros = torch.zeros(w.shape[0], dtype=torch.int64)  # (F,)
        quantized = torch.quantize_per_channel(w, scales, zeros, 0, torch.qint8)
        packed = torch.ops.quantized.linear_prepack(quantized, None)
        reduce = engine in _REDUCED
        return lambda: torch.ops.quantized.linear_dynamic(x, packed, reduce_range=reduce)

    return measure_linear(prepare, job, detail=f"engine {engine}")
