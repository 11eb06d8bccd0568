"""Runs features through a model in batches of similar length; results are in input order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import torch

from bertsmith.nn.modes import evaluating
from bertsmith.nn.packing import pack
from bertsmith.tasks.batch import TaskBatch, task_batch
from bertsmith.tasks.feature import Feature
from bertsmith.tasks.model.task_model import TaskModel
from bertsmith.tasks.task import Logits, Loss

MICRO_TOKENS = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLogits:
    """The logits of features, in their order, and the loss if all of them are labeled.

    `logits` has one entry per example for tasks on texts, one per feature for tasks on rows.
    """

    logits: list[Logits]
    loss: float | None


@torch.no_grad()
def compute_logits(
    model: TaskModel,
    features: Sequence[Feature],
    *,
    device: torch.device,
    precision: Callable[[], AbstractContextManager[Any]] = nullcontext,
    micro_tokens: int = MICRO_TOKENS,
    loss: Loss | None = None,
) -> TaskLogits:
    """Run features through a model in evaluation mode; examples stay whole in a batch.

    `loss` replaces the task's own.
    """
    loss = loss or model.task.loss
    by_number: dict[int, Logits] = {}
    total, count, labeled = 0.0, 0, True
    by_rows = model.task.reads == "rows"
    with evaluating(model):
        for numbers in example_batches(features, micro_tokens):
            chosen = [features[number] for number in numbers]
            batch = task_batch(chosen).to(device)
            with precision():
                logits = model(batch)
            if batch.targets is None:
                labeled = False
            else:
                part = loss(logits, batch)
                total, count = total + float(part.sum), count + part.count
            by_number |= split_logits(logits.float().cpu().numpy(), batch, chosen, numbers, by_rows)
    return TaskLogits(
        logits=[by_number[key] for key in sorted(by_number)],
        loss=total / count if labeled and count else None,
    )


@torch.no_grad()
def predict_auxiliary(
    model: TaskModel, features: Sequence[Feature], *, device: torch.device
) -> list[dict[str, str | float]]:
    """Predictions of the auxiliary targets, per example; the model is in evaluation mode."""
    by_example: dict[int, dict[str, str | float]] = {}
    for numbers in example_batches(features, MICRO_TOKENS):
        chosen = [features[number] for number in numbers]
        _, more = model.with_auxiliary(task_batch(chosen).to(device))
        columns = [rows.float().cpu().tolist() for rows in more]
        for place, example in enumerate(dict.fromkeys(feature.example for feature in chosen)):
            by_example[example] = {
                one.column: one.decode(rows[place])
                for one, rows in zip(model.columns, columns, strict=True)
            }
    return [by_example[number] for number in sorted(by_example)]


def example_batches(features: Sequence[Feature], micro_tokens: int) -> Iterator[list[int]]:
    """Feature numbers of each batch: whole examples, similar lengths together, long ones first.

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


def split_logits(
    logits: Logits,
    batch: TaskBatch,
    features: Sequence[Feature],
    numbers: Sequence[int],
    by_rows: bool,
) -> dict[int, Logits]:
    """Logits by feature number, or by example number."""
    if by_rows:
        ends = np.cumsum([0 if f.at is None else len(f.at) for f in features])[:-1]
        return dict(zip(numbers, np.split(logits, ends), strict=True))
    examples = [feature.example for feature in features]
    if len(logits) == batch.examples:
        return dict(zip(dict.fromkeys(examples), logits, strict=True))
    # One row per passage (choices): those of an example together.
    owners = np.array(examples)
    return {number: logits[owners == number] for number in dict.fromkeys(examples)}
