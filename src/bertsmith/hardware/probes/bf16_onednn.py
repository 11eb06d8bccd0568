"""bf16 `linear` in torch, which oneDNN runs on x86: fast, slow or fatal, depending on the CPU.

Some virtual machines advertise AMX and trap its first instruction (SIGILL). The same module run
with ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 tells what is left when oneDNN leaves AMX alone.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import linear

from bertsmith.hardware.probes.job import Job, Measurement
from bertsmith.hardware.probes.measuring import Product, measure_linear


def measure(job: Job) -> Measurement:
    """Rates of bf16 `linear`."""
    return measure_linear(_prepare, job)


def _prepare(x: Tensor, w: Tensor) -> Product:
    x16, w16 = x.to(torch.bfloat16), w.to(torch.bfloat16)
    return lambda: linear(x16, w16)
