"""`linear` on a CPU, by the GEMM that `job.option` names.

- float32: torch's own, the reference of every other path.
- bfloat16: oneDNN on x86, which is fast, slow or fatal, depending on the CPU. Some virtual machines
  advertise AMX and trap its first instruction (SIGILL).
- onednn: fp32 through oneDNN instead of MKL: the same numbers, faster on some CPUs.
- mkl: MKL's bf16 GEMM with fp32 sums. It drives AMX where oneDNN traps; without AMX it can be
  slower than fp32, so only its timing counts.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import linear

from bertsmith.errors import HardwareError
from bertsmith.hardware.gemm import (
    NO_TRANSPOSE,
    ROW_MAJOR,
    TRANSPOSE,
    has_onednn,
    load_mkl_bf16_gemm,
    onednn_linear,
)
from bertsmith.hardware.probes import Measurement, ProbeJob
from bertsmith.hardware.probes.measuring import Prepare, Product, measure_linear


def measure(job: ProbeJob) -> Measurement:
    """Rates of `linear`, operands already in the number format."""
    if job.option == "mkl":
        return measure_linear(_mkl(), job)
    if job.option == "onednn":
        if not has_onednn():
            raise HardwareError("this build of torch comes without oneDNN")
        return measure_linear(lambda x, w: lambda: onednn_linear(x, w), job)
    dtype: torch.dtype = getattr(torch, job.option)

    def prepare(x: Tensor, w: Tensor) -> Product:
        x, w = x.to(dtype), w.to(dtype)
        return lambda: linear(x, w)

    result = measure_linear(prepare, job)
    return replace(result, fp32_gflops=result.gflops) if dtype == torch.float32 else result


def _mkl() -> Prepare:
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

    return prepare
