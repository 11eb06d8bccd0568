"""Caches the outputs of a frozen encoder: each text is encoded once, not once per epoch."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from bertsmith.nn.modes import evaluating
from bertsmith.tasks.batch import TaskBatch, task_batch
from bertsmith.tasks.feature import Feature
from bertsmith.tasks.inference import MICRO_TOKENS, example_batches
from bertsmith.tasks.model.task_model import TaskModel
from bertsmith.training.execution.execution import Execution
from bertsmith.training.loop.progress import Progress, Watcher

log = logging.getLogger(__name__)

MOST = 2 * 2**30  # bytes of cached vectors; beyond that, every epoch encodes the texts again
STANDARD_ROWS = 2_000  # training rows that give means and deviations of the layers of a mix
PHASE = "the encoder reads each text once"
Rows = dict[str, list[Feature]]
Outputs = NDArray[np.float32] | list[NDArray[np.float32]]  # (W,) or (n, L, D) of each feature
EncoderCache = dict[str, Outputs]  # of each set of rows, by its name


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
    every = [feature for features in rows.values() for feature in features]
    if 4 * _numbers(model, every) > MOST:
        log.info("%d texts are more than are cached: every epoch encodes them again", len(every))
        return {name: list(features) for name, features in rows.items()}
    encode = encode_passages if model.keeps_vectors else encode_layers
    field = "vector" if model.keeps_vectors else "layers"
    cache = {} if cache is None else cache
    unread = {name: part for name, part in rows.items() if name not in cache}
    shown = _Shown(sum(len(feature) for part in unread.values() for feature in part), watch)

    def add(tokens: int) -> None:
        shown.add(tokens)
        if execution.stop.received is not None:
            raise _StopEncoding

    for name, features in unread.items():
        with suppress(_StopEncoding):
            cache[name] = encode(model, features, execution, add)
        # Every rank encodes all rows, and may see the request at another batch.
        if execution.ranks.any(name not in cache):
            return None
    return {
        name: [
            replace(feature, **{field: output})
            for feature, output in zip(features, cache[name], strict=True)
        ]
        for name, features in rows.items()
    }


def standardize_mix(model: TaskModel, rows: Sequence[Feature], execution: Execution) -> None:
    """Scale what a mix reads of a frozen encoder, by the first training rows.

    They are read for this alone, in batches of their own: the same bits whether the run is new or
    resumed, with a cache or without.
    """
    standardize = model.head.standardizer()
    if standardize is not None and model.frozen:
        standardize(encode_layers(model, rows[:STANDARD_ROWS], execution))


def _numbers(model: TaskModel, features: Sequence[Feature]) -> int:
    """How many numbers the encoder gives for features."""
    if model.keeps_vectors:
        return len(features) * model.width
    layers = 1 if model.reads_last else model.model.spec.layers + 1
    return sum(map(len, features)) * layers * model.model.spec.hidden


def encode_layers(
    model: TaskModel,
    features: Sequence[Feature],
    execution: Execution,
    count: Callable[[int], None] | None = None,
) -> list[NDArray[np.float32]]:
    """The layers (n, L, D) of each feature; `count` receives the tokens of each batch."""
    found: dict[int, NDArray[np.float32]] = {}
    for numbers, batch in _batches(model, features, execution, count):
        with torch.no_grad(), execution.precision.context():
            layers = model.layers(batch).float().cpu().numpy()
        ends = np.cumsum([len(features[number]) for number in numbers])[:-1]
        found.update(zip(numbers, np.split(layers, ends, axis=1), strict=True))
    return [found[number] for number in range(len(features))]


@torch.no_grad()
def encode_passages(
    model: TaskModel,
    features: Sequence[Feature],
    execution: Execution,
    count: Callable[[int], None] | None = None,
) -> NDArray[np.float32]:
    """The encoder output of each feature (N, W); `count` receives the tokens of each batch."""
    vectors = np.empty((len(features), model.width), dtype=np.float32)
    for numbers, batch in _batches(model, features, execution, count):
        with execution.precision.context():
            vectors[numbers] = model.passages(batch).float().cpu().numpy()
    return vectors


def _batches(
    model: TaskModel,
    features: Sequence[Feature],
    execution: Execution,
    count: Callable[[int], None] | None,
) -> Iterator[tuple[list[int], TaskBatch]]:
    """Batches of features with their numbers, while the model is in evaluation mode."""
    with evaluating(model):
        for numbers in example_batches(features, MICRO_TOKENS):
            batch = task_batch([features[number] for number in numbers]).to(execution.device)
            yield numbers, batch
            if count is not None:
                count(batch.tokens)


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
