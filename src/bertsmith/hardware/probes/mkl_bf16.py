"""MKL's bf16 GEMM with fp32 sums.

It drives AMX where oneDNN traps; without AMX it can be slower than fp32, so only its timing counts.
"""

from __future__ import annotations

import torch
from torch import Tensor

from bertsmith.hardware.gemm import NO_TRANSPOSE, ROW_MAJOR, TRANSPOSE, load_mkl_bf16_gemm
from bertsmith.hardware.probes.job import Measurement, ProbeJob
from bertsmith.hardware.probes.measuring import Product, measure_linear


def measure(job: ProbeJob) -> Measurement:
    """Rates of MKL's bf16 GEMM, operands already in bf16."""
    gemm = load_mkl_bf16_gemm()

    def prepare(x: Tensor, w: Tensor) -> Product:
        x16, w16 = x.to(torch.bfloat16).contiguous(), w.to(torch.bfloat16).contiguous()
        (rows, width), out = x16.shape, w16.shape[0]
        result = torch.full((rows, out), torch.nan)  # (T, F); what stays unwritten shows

        def product() -> Tensor:
            gemm(
                *(ROW_MAJOR, NO_TRANSPOSE, TRANSPOSE, rows, out, width),
                *(1.0, x16.data_ptr(), width, w16.data_ptr(), width),
                *(0.0, result.data_ptr(), out),
            )
            return result

        return product

    return measure_linear(prepare, job)
