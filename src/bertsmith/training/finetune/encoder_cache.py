"""What an encoder that stays as it is says of texts: each is read once, not once an epoch."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from bertsmith.tasks.batch import task_batch
from bertsmith.tasks.feature import Feature
from bertsmith.tasks.inference import MICRO_TOKENS, cut_up
from bertsmith.tasks.model.task_model import TaskModel
from bertsmith.training.execution.execution import Execution
from bertsmith.training.loop.progress import Progress, Watcher

log = logging.getLogger(__name__)

MOST = 2 * 2**30  # bytes of vectors that are kept; beyond that, every epoch reads the texts anew
PHASE = "the encoder reads each text once"
Rows = dict[str, list[Feature]]
Memory = dict[str, NDArray[np.float32]]  # vectors (N, W) of each set of rows, by its name


def keep_vectors(
    model: TaskModel,
    rows: Mapping[str, Sequence[Feature]],
    *,
    execution: Execution,
    watch: Watcher | None = None,
    memory: Memory | None = None,
) -> Rows:
    """The same features with what a frozen encoder says of each.

    Batches are made of all rows of a set, whatever is trained on them later: a run that goes on
    after a kill reads vectors of the same bits. `memory` serves runs of other seeds with the same
    encoder and rows: what it holds is not read again.
    """
    count = sum(map(len, rows.values()))
    if 4 * count * model.width > MOST:
        log.info("%d vectors are more than are kept: every epoch reads the texts anew", count)
        return {name: list(features) for name, features in rows.items()}
    memory = {} if memory is None else memory
    unread = {name: part for name, part in rows.items() if name not in memory}
    shown = _Shown(sum(len(feature) for part in unread.values() for feature in part), watch)
    for name, features in unread.items():
        memory[name] = read_vectors(model, features, execution, shown.add)
    return {
        name: [
            replace(feature, vector=vector)
            for feature, vector in zip(features, memory[name], strict=True)
        ]
        for name, features in rows.items()
    }


@torch.no_grad()
def read_vectors(
    model: TaskModel,
    features: Sequence[Feature],
    execution: Execution,
    count: Callable[[int], None] | None = None,
) -> NDArray[np.float32]:
    """What the encoder says of each feature (N, W); `count` is told the tokens of each batch."""
    was_training = model.training
    model.eval()
    found = np.empty((len(features), model.width), dtype=np.float32)
    try:
        for numbers in cut_up(features, MICRO_TOKENS):
            batch = task_batch([features[number] for number in numbers]).to(execution.device)
            with execution.precision.context():
                found[numbers] = model.passages(batch).float().cpu().numpy()
            if count is not None:
                count(batch.tokens)
    finally:
        model.train(was_training)
    return found


class _Shown:
    """How far the reading is, for whoever watches."""

    def __init__(self, tokens: int, watch: Watcher | None) -> None:
        self._all, self._watch = tokens, watch
        self._began = time.monotonic()
        self._done = 0

    def add(self, tokens: int) -> None:
        self._done += tokens
        if self._watch is None:
            return
        seconds = max(time.monotonic() - self._began, 1e-9)
        speed = self._done / seconds
        self._watch(
            Progress(
                step=0,
                steps=None,
                share=self._done / self._all,
                rate=0.0,
                tokens=self._done,
                tokens_per_second=speed,
                seconds=seconds,
                left=(self._all - self._done) / speed,
                losses={},
                accuracy={},
                phase=PHASE,
            )
        )
