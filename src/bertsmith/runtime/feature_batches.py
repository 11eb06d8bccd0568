"""Features through an engine, several batches at once, back in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from bertsmith.runtime.batches import RowBatch
from bertsmith.runtime.engines.engine import Engine, batch_budget, run_streams
from bertsmith.tasks.batch import task_batch
from bertsmith.tasks.feature import Feature
from bertsmith.tasks.inference import Answered, cut_up, shared_out
from bertsmith.tasks.model.task_model import TaskModel
from bertsmith.tasks.task import Logits


@torch.no_grad()
def answer_on(engine: Engine, model: TaskModel, features: Sequence[Feature]) -> Answered:
    """What `tasks.answering.answer` gives, by an engine that encodes the last layer; no loss."""
    budget = batch_budget(engine, sum(map(len, features)))
    segments = model.model.spec.segments
    found: dict[int, Logits] = {}

    def read(batch: RowBatch, rows: Tensor) -> Tensor:
        chosen = [features[number] for number in batch.texts]
        asked = task_batch(chosen)
        logits = model.read_layers((rows,), asked).float()
        by_rows = model.task.reads == "rows"
        found.update(shared_out(logits.numpy(), asked, chosen, batch.texts, by_rows))
        return logits

    for _ in run_streams(engine, _batches(features, budget, segments), read):
        pass
    return Answered(logits=[found[key] for key in sorted(found)], loss=None)


def _batches(features: Sequence[Feature], budget: int, segments: int) -> Iterator[RowBatch]:
    """Whole examples together; a model with one segment is told of none."""
    for numbers in cut_up(features, budget):
        codes = [features[number].encoding for number in numbers]
        starts = np.cumsum([0, *(len(code.ids) for code in codes)], dtype=np.int32)
        yield RowBatch(
            tuple(numbers),
            _joined([code.ids for code in codes]),
            starts,
            _joined([code.segments for code in codes]) if segments > 1 else None,
        )


def _joined(parts: Sequence[np.ndarray]) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.concatenate(parts).astype(np.int32, copy=False)
