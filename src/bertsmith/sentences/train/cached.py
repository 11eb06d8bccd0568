"""The backward pass of a batch of rows with cached gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from bertsmith.training.cached_gradients import RandomState, vector_gradients
from bertsmith.training.execution.ranks import Ranks
from bertsmith.training.loop.workload import StepGradients

if TYPE_CHECKING:
    from bertsmith.sentences.train.model import SentenceModel
    from bertsmith.sentences.train.workload import SentenceBatch


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
    rows, columns = batch.place.shape
    gradients = torch.zeros_like(texts)
    gradients[batch.place.reshape(-1)] = vector_gradients(
        texts[batch.place.reshape(-1)].view(rows, columns, texts.shape[1]),
        batch.start,
        lambda every: model.objective(every.unbind(dim=1), batch.targets, batch.keys),
        step,
        ranks=ranks,
        part=part,
    ).view(rows * columns, texts.shape[1])
    done = 0
    for chunk, state in zip(batch.chunks, states, strict=True):
        state.restore()
        with step.execution.precision.context():
            vectors = model(chunk)
        own = gradients[done : done + len(vectors)]
        torch.autograd.backward(vectors, own.to(vectors.dtype))
        done += len(vectors)
    after.restore()
