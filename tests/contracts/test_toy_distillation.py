"""A toy distillation: the logits of a teacher are looked up by the number of a row."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import torch
from tiny_finetuning import RECIPE, finetune, rows, tiny_folder, tiny_job
from torch import Tensor
from torch.nn import functional as F

from bertsmith.nn.loss import LossSum
from bertsmith.tasks.batch import TaskBatch


def test_every_row_meets_its_own_teacher_in_every_epoch(tmp_path: Path) -> None:
    sets = {True: rows(40), False: rows(10, seed=1)}  # of training, and held out
    teachers, lengths = {}, {}
    for training, examples in sets.items():
        random = torch.Generator().manual_seed(5)
        teachers[training] = torch.randn(len(examples), 2, generator=random)
        words = [len(example.texts[0].split()) for example in examples]
        lengths[training] = torch.tensor(words) + 2
    seen: Counter[int] = Counter()
    orders: list[list[int]] = []

    def distil(logits: Tensor, batch: TaskBatch) -> LossSum:
        training = torch.is_grad_enabled()
        # Whatever the order, the number of a row is that of its text.
        expected = lengths[training][batch.numbers].tolist()
        assert expected == list(batch.layout.lengths)
        if training:
            seen.update(batch.numbers.tolist())
            orders.append(batch.numbers.tolist())
        wanted = teachers[training][batch.numbers].softmax(-1)
        return LossSum(F.cross_entropy(logits.float(), wanted, reduction="sum"), batch.examples)

    plan = RECIPE.plan.model_copy(update={"epochs": 2})
    job = tiny_job(
        tiny_folder(tmp_path / "tiny"),
        None,
        recipe=RECIPE.model_copy(update={"plan": plan}),
        train=sets[True],
        dev=sets[False],
    )
    result = finetune(job, loss=distil)

    assert result.outcome.status == "finished"
    assert seen == dict.fromkeys(range(40), 2)
    half = len(orders) // 2
    assert orders[:half] != orders[half:]
