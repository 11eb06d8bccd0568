"""`linear` in torch in one number format, which `job.option` names: float32, bfloat16, float16.

float32 is what every other path is compared with. bfloat16 runs in oneDNN on x86: fast, slow or
fatal, depending on the CPU. Some virtual machines advertise AMX and trap its first instruction
(SIGILL); with ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 the probe measures oneDNN without AMX. float16 is
right nearly everywhere and fast on few machines.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import linear

from bertsmith.hardware.probes.job import Measurement, ProbeJob
from bertsmith.hardware.probes.measuring import Product, measure_linear


def measure(job: ProbeJob) -> Measurement:
    """Rates of `linear`, operands already in the number format."""
    dtype: torch.dtype = getattr(torch, job.option)

    def prepare(x: Tensor, w: Tensor) -> Product:
        x, w = x.to(dtype), w.to(dtype)
        return lambda: linear(x, w)

    result = measure_linear(prepare, job)
    return replace(result, fp32_gflops=result.gflops) if dtype == torch.float32 else result
