"""How matrices are multiplied in training: fp32 or bf16 products on CPUs, autocast on GPUs.

Only a path that a probe has run in a process of its own is ever used: on some machines the first
bf16 instruction ends the process.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from bertsmith.errors import HardwareError
from bertsmith.hardware.choice import TRAINING, TRAINING_FP32, choose_path, is_right
from bertsmith.hardware.gemm import (
    NO_TRANSPOSE,
    ROW_MAJOR,
    TRANSPOSE,
    load_mkl_bf16_gemm,
    onednn_linear,
)
from bertsmith.hardware.report import MachineReport, examine
from bertsmith.nn.embeddings import Embeddings
from bertsmith.nn.feed_forward import FeedForward
from bertsmith.nn.matmul_backends import MatmulBackend, TorchMatmul, mark, use_products


class MklProducts:
    """Products of bf16 operands; sums and results are fp32."""

    name = "mkl-bf16"
    dtype = torch.bfloat16
    output = torch.float32

    def __init__(self) -> None:
        """Raises HardwareError where torch comes without MKL; probes decide whether it is right."""
        self._multiply: Callable[..., None] = load_mkl_bf16_gemm()

    def forward(self, rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """(T, D), (F, D), (F,) -> (T, F)."""
        (count, inner), width = rows.shape, weight.shape[0]
        if bias is None:
            result = torch.empty(count, width)
        else:
            result = bias.detach().float().expand(count, width).contiguous()
        sizes = (count, width, inner)
        return self._product(rows, weight, result, sizes, right=TRANSPOSE, add=bias is not None)

    def rows_gradient(self, gradient: Tensor, weight: Tensor) -> Tensor:
        """(T, F), (F, D) -> (T, D)."""
        (count, inner), width = gradient.shape, weight.shape[1]
        return self._product(gradient, weight, torch.empty(count, width), (count, width, inner))

    def weight_gradient(self, gradient: Tensor, rows: Tensor, into: Tensor | None = None) -> Tensor:
        """(T, F), (T, D) -> (F, D), added to `into` if given."""
        (inner, count), width = gradient.shape, rows.shape[1]
        result = torch.empty(count, width) if into is None else into
        sizes = (count, width, inner)
        return self._product(gradient, rows, result, sizes, left=TRANSPOSE, add=into is not None)

    def _product(
        self,
        a: Tensor,
        b: Tensor,
        result: Tensor,
        sizes: tuple[int, int, int],
        *,
        left: int = NO_TRANSPOSE,
        right: int = NO_TRANSPOSE,
        add: bool = False,
    ) -> Tensor:
        """result = a b, each as stored or transposed, plus what `result` holds if `add`."""
        if not result.numel():
            return result
        if not sizes[2]:
            return result if add else result.zero_()
        a, b = a.contiguous(), b.contiguous()
        self._multiply(
            *(ROW_MAJOR, left, right, *sizes),
            *(1.0, a.data_ptr(), a.shape[1], b.data_ptr(), b.shape[1]),
            *(float(add), result.data_ptr(), result.shape[1]),
        )
        return result


@dataclass(frozen=True, slots=True)
class OneDnnProducts(TorchMatmul):
    """Towards the output and towards the input by oneDNN; towards the weight MKL is as fast."""

    name: str = "onednn-fp32"

    def forward(self, rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """(T, D), (F, D), (F,) -> (T, F)."""
        if not rows.numel() or not weight.numel():
            return TorchMatmul.forward(self, rows, weight, bias)
        return onednn_linear(rows, weight, bias)

    def rows_gradient(self, gradient: Tensor, weight: Tensor) -> Tensor:
        """(T, F), (F, D) -> (T, D)."""
        if not gradient.numel() or not weight.numel():
            return TorchMatmul.rows_gradient(self, gradient, weight)
        return onednn_linear(gradient, weight.t())


log = logging.getLogger(__name__)

Wanted = Literal["auto", "fp32", "bf16"]
FP32, ONEDNN_FP32 = "fp32", "onednn-fp32"
TORCH_BF16, MKL_BF16, AUTOCAST = "torch-bf16", "mkl-bf16", "autocast-bf16"
_BEGUN = "the run was begun with it"
SMALLEST_SIDE = 64  # below this, casting the operands costs more than their product


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecisionPath:
    """One way to multiply, by the name that a checkpoint records, and why it was chosen."""

    name: str
    reason: str
    device: str = "cpu"

    def context(self) -> AbstractContextManager[Any]:
        """What forward passes run in."""
        if self.name == AUTOCAST:
            return torch.autocast(self.device, torch.bfloat16)
        return nullcontext()

    def prepare(self, model: nn.Module) -> None:
        """Switch the linear layers and the vocabulary of a model over, before it is trained.

        Parameters stay fp32 and keep their names; passes without gradients stay fp32 throughout.
        """
        products = _products(self.name)
        if products is None:
            return
        for module in model.modules():
            if isinstance(module, nn.Linear):
                if min(module.weight.shape) >= SMALLEST_SIDE:
                    use_products(module, products)
            elif isinstance(module, Embeddings):
                # In each pass: sharded weights are other tensors while they are gathered.
                module.register_forward_pre_hook(partial(_mark_tokens, products))
        for module in model.modules():
            # Between the two layers of a feed-forward there is only an activation: stay in bf16.
            if isinstance(module, FeedForward) and min(module.up.weight.shape) >= SMALLEST_SIDE:
                use_products(module.up, products, narrow=True)


def choose_precision(
    wanted: Wanted, device: torch.device, *, before: str | None = None
) -> PrecisionPath:
    """The path for a device; `before` is what the checkpoint to resume from records.

    That path stays if it is right here, even if another would be faster today; if this machine
    does not have it, the run is refused instead of resuming with other numbers.
    """
    if device.type == "cpu":
        return _on_cpu(wanted, before)
    if wanted == "fp32" or (wanted == "auto" and before in (FP32, ONEDNN_FP32)):
        return PrecisionPath(name=FP32, reason="set by the user", device=device.type)
    if _has_bf16(device):
        return PrecisionPath(name=AUTOCAST, reason="this device has bf16", device=device.type)
    if wanted == "bf16" or before == AUTOCAST:
        raise HardwareError(f"the device {device} has no bf16; train with run.precision=fp32")
    return PrecisionPath(name=FP32, reason="this device has no bf16", device=device.type)


def _on_cpu(wanted: Wanted, before: str | None) -> PrecisionPath:
    if before == FP32 and wanted != "bf16":
        return PrecisionPath(name=FP32, reason=_BEGUN)
    paths = TRAINING_FP32 if wanted == "fp32" else TRAINING
    report = examine(paths)
    if before is not None and wanted in ("auto", _format(before)):
        if _is_right(before, report):
            return PrecisionPath(name=before, reason=_BEGUN)
        if wanted != "fp32":  # which has a path everywhere; that it is another must be accepted
            raise HardwareError(
                f"the run was begun with {before} products, which do not work on this machine; "
                "resume where they do, or set run.precision=fp32 and accept the change of "
                "precision by name"
            )
    choice = choose_path(report, paths)
    if wanted == "bf16" and _format(choice.path) == "fp32":
        # The user insists: right is enough, faster or not.
        right = [path for path in (TORCH_BF16, MKL_BF16) if _is_right(path, report)]
        if not right:
            reasons = "; ".join(f"{name}: {why}" for name, why in choice.refused.items())
            raise HardwareError(
                f"no bf16 product works on this CPU ({reasons}); train with run.precision=fp32"
            )
        return PrecisionPath(name=right[0], reason="set by the user; no faster than fp32 here")
    return PrecisionPath(name=choice.path, reason=choice.reason)


def _format(path: str) -> Wanted:
    """The setting that leads to a path."""
    return "fp32" if path in (FP32, ONEDNN_FP32) else "bf16"


def _is_right(path: str, report: MachineReport) -> bool:
    probe = next((name for name, engine in TRAINING.items() if engine == path), "")
    return bool(probe) and is_right(report.get(probe))


def _has_bf16(device: torch.device) -> bool:
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return device.type == "xpu"


def _mark_tokens(products: MatmulBackend, module: nn.Module, _: tuple[Any, ...]) -> None:
    if isinstance(module, Embeddings):
        mark(module.tokens.weight, products)


def _products(name: str) -> MatmulBackend | None:
    if name == TORCH_BF16:
        return TorchMatmul(torch.bfloat16, TORCH_BF16)
    if name == ONEDNN_FP32:
        return OneDnnProducts()
    return MklProducts() if name == MKL_BF16 else None
