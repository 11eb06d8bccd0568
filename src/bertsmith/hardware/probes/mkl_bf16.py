"""MKL's bf16 GEMM with fp32 sums, which x86 wheels of torch export from libtorch_cpu.so.

It drives AMX where oneDNN traps; without AMX it can be slower than fp32, so only its timing counts.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from bertsmith.errors import HardwareError
from bertsmith.hardware.probes.gemm import Product, measure_linear
from bertsmith.hardware.probes.job import Job, Measurement

_LIBRARIES = ("libtorch_cpu.so", "libtorch_cpu.dylib", "torch_cpu.dll")
_SYMBOL = "cblas_gemm_bf16bf16f32"
# From the CBLAS standard; MKL in torch takes 32-bit integers (LP64).
_ROW_MAJOR, _PLAIN, _TRANSPOSED = 101, 111, 112


def measure(job: Job) -> Measurement:
    """Rates of MKL's bf16 GEMM, operands already in bf16."""
    gemm = load()

    def prepare(x: Tensor, w: Tensor) -> Product:
        x16, w16 = x.to(torch.bfloat16).contiguous(), w.to(torch.bfloat16).contiguous()
        (rows, width), out = x16.shape, w16.shape[0]
        result = torch.full((rows, out), torch.nan)  # (T, F); what stays unwritten shows

        def product() -> Tensor:
            gemm(
                *(_ROW_MAJOR, _PLAIN, _TRANSPOSED, rows, out, width),
                *(1.0, x16.data_ptr(), width, w16.data_ptr(), width),
                *(0.0, result.data_ptr(), out),
            )
            return result

        return product

    return measure_linear(prepare, job)


def load() -> Callable[..., None]:
    """The C function with its argument types; raises HardwareError where torch lacks it."""
    folder = Path(torch.__file__).parent / "lib"
    path = next((folder / name for name in _LIBRARIES if (folder / name).exists()), None)
    if path is None:
        raise HardwareError("torch has no libtorch_cpu library here")
    function = getattr(ctypes.CDLL(str(path)), _SYMBOL, None)
    if function is None:
        raise HardwareError("this build of torch comes without MKL's bf16 product")
    whole, real, pointer = ctypes.c_int, ctypes.c_float, ctypes.c_void_p
    function.argtypes = [whole] * 6 + [real, pointer, whole, pointer, whole, real, pointer, whole]
    function.restype = None
    found: Callable[..., None] = function
    return found
