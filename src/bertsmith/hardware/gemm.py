"""Matrix products that torch carries without an API: MKL's bf16 GEMM and oneDNN's fp32 linear.

Both may be missing, slow or fatal on a machine: the probes measure them in a child process first.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from bertsmith.errors import HardwareError

# From the CBLAS standard; MKL in torch takes 32-bit integers (LP64).
ROW_MAJOR, NO_TRANSPOSE, TRANSPOSE = 101, 111, 112

_LIBRARIES = ("libtorch_cpu.so", "libtorch_cpu.dylib")
_SYMBOL = "cblas_gemm_bf16bf16f32"


def load_mkl_bf16_gemm() -> Callable[..., None]:
    """MKL's `cblas_gemm_bf16bf16f32` (bf16 operands, fp32 sums), which x86 wheels of torch export.

    Raises HardwareError where torch comes without it.
    """
    folder = Path(torch.__file__).parent / "lib"
    path = next((folder / name for name in _LIBRARIES if (folder / name).exists()), None)
    if path is None:
        raise HardwareError("torch has no libtorch_cpu library here")
    function = getattr(ctypes.CDLL(str(path)), _SYMBOL, None)
    if function is None:
        raise HardwareError("this build of torch comes without MKL's bf16 product")
    integer, real, pointer = ctypes.c_int, ctypes.c_float, ctypes.c_void_p
    operand = [pointer, integer]  # data, leading dimension
    function.argtypes = [*[integer] * 6, real, *operand, *operand, real, *operand]
    function.restype = None
    gemm: Callable[..., None] = function
    return gemm


def has_onednn() -> bool:
    """Whether this build of torch comes with oneDNN."""
    return hasattr(torch.ops.mkldnn, "_linear_pointwise")


def onednn_linear(x: Tensor, w: Tensor, bias: Tensor | None = None) -> Tensor:
    """x (T, D), w (F, D) with any strides, bias (F,) -> x w^T + bias (T, F).

    torch multiplies fp32 with MKL, which is slower on processors that are not Intel's.
    """
    result: Tensor = torch.ops.mkldnn._linear_pointwise(x, w, bias, "none", [], "")
    return result
