"""Cached gradients: a loss over a batch of any size in the memory of one chunk, exactly.

Every chunk is encoded without gradients; the loss of all vectors gives the gradient of each; every
chunk is encoded once more, with the same dropout masks, and its gradients go down from there (Gao
et al. 2021, arXiv:2101.06983). On several ranks each one has the vectors of all and takes the
gradients of its own, whose sum over ranks is that of one rank: no collective call goes backward.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from bertsmith.nn.loss import LossSum
from bertsmith.training.execution.ranks import Ranks
from bertsmith.training.loop.workload import StepGradients

if TYPE_CHECKING:
    from bertsmith.sentences.train.model import SentenceModel
    from bertsmith.sentences.train.workload import SentenceBatch


class RandomState:
    """The state of torch's generators, of which dropout masks are drawn."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._host = torch.get_rng_state()
        self._own = torch.cuda.get_rng_state(device) if device.type == "cuda" else None

    def restore(self) -> None:
        """Draw the same numbers again."""
        torch.set_rng_state(self._host)
        if self._own is not None:
            torch.cuda.set_rng_state(self._own, self._device)


def cached_backward(
    model: SentenceModel, batch: SentenceBatch, step: StepGradients, *, ranks: Ranks, part: str
) -> None:
    """Accumulate the gradients of a batch, and record its loss."""
    batch = batch.to(step.execution.device)
    states = []
    parts = []
    with torch.no_grad():
        for chunk in batch.chunks:
            states.append(RandomState(step.execution.device))
            with step.execution.precision.context():
                parts.append(model(chunk).float())
    after = RandomState(step.execution.device)
    texts = torch.cat(parts) if parts else torch.zeros(0, model.width, device=step.execution.device)
    gradients = _vector_gradients(model, batch, texts, step, ranks=ranks, part=part)
    done = 0
    for chunk, state in zip(batch.chunks, states, strict=True):
        state.restore()
        with step.execution.precision.context():
            vectors = model(chunk)
        own = gradients[done : done + len(vectors)]
        torch.autograd.backward(vectors, own.to(vectors.dtype))
        done += len(vectors)
    after.restore()


def _vector_gradients(
    model: SentenceModel,
    batch: SentenceBatch,
    texts: Tensor,
    step: StepGradients,
    *,
    ranks: Ranks,
    part: str,
) -> Tensor:
    """The gradient of the loss of all rows for each own vector: texts (B, W) -> (B, W)."""
    rows, columns = batch.place.shape
    own = texts[batch.place.reshape(-1)].view(rows, columns, texts.shape[1])  # (n, c, W)
    every = ranks.gather_rows(own)  # (N, c, W)
    end = batch.start + rows
    leaf = own.clone().requires_grad_()
    joined = torch.cat([every[: batch.start], leaf, every[end:]])
    losses = model.objective(joined.unbind(dim=1), batch.targets, batch.keys)
    step.backward({part: LossSum(losses.sum(), len(joined))})
    step.record({part: LossSum(losses[batch.start : end].detach().sum(), rows)})
    gradients = torch.zeros_like(texts)
    if leaf.grad is not None:
        gradients[batch.place.reshape(-1)] = leaf.grad.view(rows * columns, texts.shape[1])
    return gradients
