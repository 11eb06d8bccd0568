"""Features through an engine, several batches at once, back in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from bertsmith.nn.inputs import SEGMENTS
from bertsmith.runtime.batches import RowBatch
from bertsmith.runtime.engines.engine import Engine, batch_budget, run_streams
from bertsmith.tasks.batch import channels_of, positions_of, task_batch, visibility_of
from bertsmith.tasks.feature import Feature
from bertsmith.tasks.inference import Answered, cut_up, shared_out
from bertsmith.tasks.model.task_model import TaskModel
from bertsmith.tasks.task import Logits


@torch.no_grad()
def answer_on(engine: Engine, model: TaskModel, features: Sequence[Feature]) -> Answered:
    """What `tasks.answering.answer` gives, by an engine that encodes the last layer; no loss."""
    budget = batch_budget(engine, sum(map(len, features)))
    segments = model.model.spec.reads_segments
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


def _batches(features: Sequence[Feature], budget: int, segments: bool) -> Iterator[RowBatch]:
    """Whole examples together; segments only for a model that reads them."""
    for numbers in cut_up(features, budget):
        chosen = [features[number] for number in numbers]
        starts = np.cumsum([0, *map(len, chosen)], dtype=np.int32)
        channels = channels_of(chosen)
        if not segments:
            del channels[SEGMENTS]
        yield RowBatch(
            tuple(numbers),
            _joined([one.encoding.ids for one in chosen]),
            starts,
            channels=channels,
            positions=positions_of(chosen),
            sees=visibility_of(chosen),
        )


def _joined(parts: Sequence[np.ndarray]) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.concatenate(parts).astype(np.int32, copy=False)
