"""Caches the outputs of a frozen encoder: each text is encoded once, not once per epoch."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from bertsmith.tasks.batch import task_batch
from bertsmith.tasks.feature import Feature
from bertsmith.tasks.inference import MICRO_TOKENS, example_batches
from bertsmith.tasks.model.task_model import TaskModel
from bertsmith.training.execution.execution import Execution
from bertsmith.training.loop.progress import Progress, Watcher

log = logging.getLogger(__name__)

MOST = 2 * 2**30  # bytes of cached vectors; beyond that, every epoch encodes the texts again
PHASE = "the encoder reads each text once"
Rows = dict[str, list[Feature]]
EncoderCache = dict[str, NDArray[np.float32]]  # vectors (N, W) of each set of rows, by its name


def cache_vectors(
    model: TaskModel,
    rows: Mapping[str, Sequence[Feature]],
    *,
    execution: Execution,
    watch: Watcher | None = None,
    cache: EncoderCache | None = None,
) -> Rows | None:
    """The same features with the output of a frozen encoder for each; None: a stop request came.

    Batches are cut from all rows of a set, whatever is trained on them later: a run that resumes
    after a kill reads vectors of the same bits. `cache` serves runs of other seeds with the same
    encoder and rows: what it holds is not read again.
    """
    count = sum(map(len, rows.values()))
    if 4 * count * model.width > MOST:
        log.info("%d vectors are more than are cached: every epoch encodes the texts again", count)
        return {name: list(features) for name, features in rows.items()}
    cache = {} if cache is None else cache
    unread = {name: part for name, part in rows.items() if name not in cache}
    shown = _Shown(sum(len(feature) for part in unread.values() for feature in part), watch)

    def add(tokens: int) -> None:
        shown.add(tokens)
        if execution.stop.received is not None:
            raise _StopEncoding

    for name, features in unread.items():
        with suppress(_StopEncoding):
            cache[name] = encode_passages(model, features, execution, add)
        # Every rank encodes all rows, and may see the request at another batch.
        if execution.ranks.any(name not in cache):
            return None
    return {
        name: [
            replace(feature, vector=vector)
            for feature, vector in zip(features, cache[name], strict=True)
        ]
        for name, features in rows.items()
    }


@torch.no_grad()
def encode_passages(
    model: TaskModel,
    features: Sequence[Feature],
    execution: Execution,
    count: Callable[[int], None] | None = None,
) -> NDArray[np.float32]:
    """The encoder output of each feature (N, W); `count` receives the tokens of each batch."""
    was_training = model.training
    model.eval()
    vectors = np.empty((len(features), model.width), dtype=np.float32)
    try:
        for numbers in example_batches(features, MICRO_TOKENS):
            batch = task_batch([features[number] for number in numbers]).to(execution.device)
            with execution.precision.context():
                vectors[numbers] = model.passages(batch).float().cpu().numpy()
            if count is not None:
                count(batch.tokens)
    finally:
        model.train(was_training)
    return vectors


class _StopEncoding(Exception):  # noqa: N818 - no error, and never leaves this module
    """A stop request came between two batches."""


class _Shown:
    """The progress of encoding, for the watcher."""

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
                share=self._done / self._all,
                tokens=self._done,
                tokens_per_second=speed,
                seconds=seconds,
                left=(self._all - self._done) / speed,
                phase=PHASE,
            )
        )
