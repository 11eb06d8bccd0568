"""Learning one batch by heart, gently enough that no seed gets stuck."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from bertsmith.tasks.batch import task_batch
from bertsmith.tasks.feature import Feature
from bertsmith.tasks.model.task_model import TaskModel

STEPS = 400
WARM_UP = 30
RATE = 2e-3
KNOWN = 0.02  # the mean loss at which a batch is known


def steps_to_learn(model: TaskModel, features: Sequence[Feature]) -> int:
    """Train on one batch until it is known; fails if it never is."""
    batch = task_batch(features)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.0)
    model.train()
    for step in range(STEPS):
        optimizer.param_groups[0]["lr"] = RATE * min(1.0, (step + 1) / WARM_UP)
        part = model.task.loss(model(batch), batch)
        assert part.count == model.task.count(batch)
        if part.sum.item() / part.count < KNOWN:
            return step
        optimizer.zero_grad()
        (part.sum / part.count).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    raise AssertionError(
        f"the loss is still {part.sum.item() / part.count:.3f} after {STEPS} steps"
    )
