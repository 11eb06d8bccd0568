"""Cross-entropy over a whole vocabulary, in chunks: the logits of all rows never exist at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from bertsmith.nn.loss import LossSum
from bertsmith.nn.matmul_backends import MatmulBackend, TorchMatmul, products_of

# Logits held at once. Larger blocks are given back to the system and faulted in again page by
# page at every step (30 ms for 70 MB); in smaller chunks adding up dW costs more than it saves.
CHUNK_BYTES = 24 << 20


def vocabulary_loss(
    rows: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    *,
    smoothing: float = 0.0,
    chunk_bytes: int = CHUNK_BYTES,
) -> tuple[LossSum, Tensor]:
    """(P, E) rows, (V, E) weight, (V,) bias or None, (P,) targets -> losses, right predictions.

    Gradients are made in the forward pass, chunk by chunk, while the probabilities are there, and
    scaled in the backward pass, which may run once. The format is that of autocast where it is
    on, that of the products the weight was marked with when training, or the weight's own.
    `smoothing` is the share of each label that is spread evenly over the vocabulary.
    """
    products = _products(weight)
    job = _Job(
        products=products,
        cast=products.dtype,
        kept=weight.dtype,
        chunk_bytes=chunk_bytes,
        smoothing=smoothing,
        wanted=torch.is_grad_enabled(),
    )
    with torch.autocast(weight.device.type, enabled=False):
        total, correct = _Loss.apply(  # type: ignore[no-untyped-call]
            rows, weight, bias, targets, job
        )
    return LossSum(total, targets.numel()), correct


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """What the autograd function needs besides tensors."""

    products: MatmulBackend
    cast: torch.dtype  # of the operands
    kept: torch.dtype  # of the weight
    chunk_bytes: int
    smoothing: float  # of the labels
    wanted: bool  # whether gradients are


def _products(weight: Tensor) -> MatmulBackend:
    kind = weight.device.type
    marked = products_of(weight)
    if marked is not None and torch.is_grad_enabled():
        return marked
    dtype = weight.dtype
    # Probabilities below 6e-8 vanish in fp16, and no loss scale is known here: fp32 instead.
    if torch.is_autocast_enabled(kind) and torch.get_autocast_dtype(kind) != torch.float16:
        dtype = torch.get_autocast_dtype(kind)
    return TorchMatmul(dtype)


class _Loss(torch.autograd.Function):
    """The loss, with its gradients kept instead of the logits."""

    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, job: _Job
    ) -> tuple[Tensor, Tensor]:
        needs = [needed and job.wanted for needed in ctx.needs_input_grad]
        made = _Gradients(rows, weight, bias, needs, job)
        cast_weight = weight.to(job.cast)
        total = torch.zeros((), dtype=torch.float32, device=rows.device)
        if weight.dtype == torch.float64:
            total = total.double()
        correct = torch.zeros((), dtype=torch.long, device=rows.device)
        for part in _parts(rows.shape[0], weight, job):
            cast_rows = rows[part].to(job.cast)
            wanted = targets[part, None]  # (p, 1)
            logits = job.products.forward(cast_rows, cast_weight, bias)  # (p, V)
            top, right = _best(logits, wanted, exact=not job.wanted)
            gap = (top - logits.gather(1, wanted)).to(total.dtype)
            if job.smoothing:
                spread = top.to(total.dtype) - logits.mean(1, keepdim=True, dtype=total.dtype)
                gap = (1 - job.smoothing) * gap + job.smoothing * spread
            chances = logits.softmax(1)  # (p, V)
            # log of the sum of exp(logit - top) is minus the log of the best chance, never of 0
            total += (gap - chances.amax(1, keepdim=True).to(total.dtype).log()).sum()
            correct += right
            if any(needs):
                made.add(part, chances, wanted, cast_rows, cast_weight)
        ctx.made = made
        ctx.mark_non_differentiable(correct)
        return total, correct

    @staticmethod
    def backward(ctx: Any, scale: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        made = ctx.made
        if made is None:
            raise RuntimeError("the gradients of a vocabulary loss can be taken only once")
        ctx.made = None  # the last reference goes, so that autograd keeps the tensors uncopied
        found = [made.rows, made.weight, made.bias]
        del made
        for tensor in found:
            if tensor is not None:
                tensor.mul_(scale)
        return (*found, None, None)


class _Gradients:
    """The gradients of a sum of losses, added up chunk by chunk."""

    def __init__(
        self, rows: Tensor, weight: Tensor, bias: Tensor | None, needs: list[bool], job: _Job
    ) -> None:
        self._job = job
        self._needs_weight = needs[1]
        none = not rows.shape[0]
        self.rows = torch.empty_like(rows) if needs[0] else None
        self.weight = torch.zeros_like(weight) if needs[1] and none else None
        self.bias = torch.zeros_like(bias) if bias is not None and needs[2] else None

    def add(
        self, part: slice, chances: Tensor, wanted: Tensor, rows: Tensor, weight: Tensor
    ) -> None:
        """Take in one chunk; `chances` (p, V) is overwritten with the logits' gradient."""
        products, smoothing = self._job.products, self._job.smoothing
        chances.scatter_(1, wanted, chances.gather(1, wanted) - (1.0 - smoothing))
        if smoothing:
            chances -= smoothing / chances.shape[1]
        change = chances.to(self._job.cast)
        if self.bias is not None:  # a product is faster than torch's sum over rows
            self.bias += products.weight_gradient(change, change.new_ones(len(change), 1))[:, 0]
        if self.rows is not None:
            self.rows[part] = products.rows_gradient(change, weight)
        if not self._needs_weight:
            return
        if self.weight is None:
            self.weight = products.weight_gradient(change, rows).to(self._job.kept)
        else:
            products.weight_gradient(change, rows, into=self.weight)


def _best(logits: Tensor, wanted: Tensor, *, exact: bool) -> tuple[Tensor, Tensor]:
    """The largest logit of each row (p, 1), and how often it is the wanted one.

    Where training only logs it, a tie counts as right: finding the first of the best costs
    eight times as much as the best.
    """
    if exact:
        top, best = logits.max(1, keepdim=True)
        return top, (best == wanted).sum()
    top = logits.amax(1, keepdim=True)
    return top, (logits.gather(1, wanted) == top).sum()


def _parts(count: int, weight: Tensor, job: _Job) -> list[slice]:
    """Rows in chunks of equal size whose logits fit into the bytes allowed."""
    size = max(weight.shape[0] * torch.empty((), dtype=job.products.output).element_size(), 1)
    most = max(1, job.chunk_bytes // size)
    number = -(-count // most)
    each = -(-count // number) if number else 1
    return [slice(start, min(start + each, count)) for start in range(0, count, each)]
