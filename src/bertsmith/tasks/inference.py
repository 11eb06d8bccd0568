"""Features through a model, in batches of like length, back in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import torch

from bertsmith.labeled.example import Example
from bertsmith.nn.packing import pack
from bertsmith.tasks.batch import TaskBatch, task_batch
from bertsmith.tasks.feature import Feature
from bertsmith.tasks.model.task_model import TaskModel
from bertsmith.tasks.prediction import Prediction
from bertsmith.tasks.task import Logits, Loss

MICRO_TOKENS = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The logits of features, in their order, and the loss if all of them are labeled.

    `logits` has an entry an example for tasks on texts and an entry a feature for tasks on rows.
    """

    logits: list[Logits]
    loss: float | None


@torch.no_grad()
def answer(
    model: TaskModel,
    features: Sequence[Feature],
    *,
    device: torch.device,
    precision: Callable[[], AbstractContextManager[Any]] = nullcontext,
    micro_tokens: int = MICRO_TOKENS,
    loss: Loss | None = None,
) -> Answered:
    """Run features through a model in evaluation mode; examples stay whole in a batch.

    `loss` takes the place of the task's own.
    """
    loss = loss or model.task.loss
    was_training = model.training
    model.eval()
    found: dict[int, Logits] = {}
    total, count, labeled = 0.0, 0, True
    by_rows = model.task.reads == "rows"
    try:
        for numbers in cut_up(features, micro_tokens):
            chosen = [features[number] for number in numbers]
            batch = task_batch(chosen).to(device)
            with precision():
                logits = model(batch)
            if batch.targets is None:
                labeled = False
            else:
                part = loss(logits, batch)
                total, count = total + float(part.sum), count + part.count
            found |= shared_out(logits.float().cpu().numpy(), batch, chosen, numbers, by_rows)
    finally:
        model.train(was_training)
    return Answered(
        logits=[found[key] for key in sorted(found)],
        loss=total / count if labeled and count else None,
    )


@torch.no_grad()
def answer_auxiliary(
    model: TaskModel, features: Sequence[Feature], *, device: torch.device
) -> list[dict[str, str | float]]:
    """What a model in evaluation mode says of its auxiliary targets, example by example."""
    found: dict[int, dict[str, str | float]] = {}
    for numbers in cut_up(features, MICRO_TOKENS):
        chosen = [features[number] for number in numbers]
        _, more = model.with_auxiliary(task_batch(chosen).to(device))
        columns = [rows.float().cpu().tolist() for rows in more]
        for place, example in enumerate(dict.fromkeys(feature.example for feature in chosen)):
            found[example] = {
                one.column: one.decode(rows[place])
                for one, rows in zip(model.columns, columns, strict=True)
            }
    return [found[number] for number in sorted(found)]


def predictions(
    model: TaskModel, answered: Answered, features: Sequence[Feature], examples: Sequence[Example]
) -> list[Prediction]:
    """What the logits say of each example."""
    return model.task.decode(answered.logits, features, examples)


def cut_up(features: Sequence[Feature], micro_tokens: int) -> Iterator[list[int]]:
    """Numbers of features for each batch: whole examples, like lengths together, long ones first.

    A batch holds at most `micro_tokens` tokens, or a single example.
    """
    runs = [
        list(run) for _, run in groupby(range(len(features)), key=lambda n: features[n].example)
    ]
    sizes = [sum(len(features[number]) for number in run) for run in runs]
    longest = [max(len(features[number]) for number in run) for run in runs]
    order = sorted(range(len(runs)), key=lambda at: (-longest[at], at))
    for chosen in pack(sizes, micro_tokens, order=order):
        yield [number for at in chosen for number in runs[at]]


def shared_out(
    logits: Logits,
    batch: TaskBatch,
    features: Sequence[Feature],
    numbers: Sequence[int],
    by_rows: bool,
) -> dict[int, Logits]:
    """Logits by number of feature, or of example."""
    if by_rows:
        ends = np.cumsum([0 if f.at is None else len(f.at) for f in features])[:-1]
        return dict(zip(numbers, np.split(logits, ends), strict=True))
    examples = [feature.example for feature in features]
    if len(logits) == batch.examples:
        return dict(zip(dict.fromkeys(examples), logits, strict=True))
    # One entry a passage (choices): those of an example together.
    owners = np.array(examples)
    return {number: logits[owners == number] for number in dict.fromkeys(examples)}
