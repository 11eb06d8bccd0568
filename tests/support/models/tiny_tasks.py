"""A tiny encoder with words of its own, and one way to overfit it, for the tests of tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from tiny_models import shrunk

from bertsmith.labeled.example import Example, Target
from bertsmith.models.build import build
from bertsmith.models.variant import Head
from bertsmith.nn.pooling import LayerMix
from bertsmith.tasks.batch import task_batch
from bertsmith.tasks.feature import Feature
from bertsmith.tasks.length import LengthSettings
from bertsmith.tasks.model.from_settings import published_head, task_model
from bertsmith.tasks.model.heads import RowsHead, VectorHead
from bertsmith.tasks.model.layers import HeadSettings
from bertsmith.tasks.model.rows import RowReading
from bertsmith.tasks.model.task_model import TaskModel
from bertsmith.tasks.model.text_vector import VectorSettings
from bertsmith.tasks.task import Task
from bertsmith.text.tokenizer import Tokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TASK_WORDS = ["red", "green", "blue", "round", "square", "large", "small", "stone", "river"]
TASK_WORDS += ["tree", "bird", "house"]
CPU = torch.device("cpu")


def word_tokenizer(words: Sequence[str] = TASK_WORDS) -> Tokenizer:
    vocabulary = "\n".join([*SPECIAL, *words])
    return Tokenizer.from_files(
        {
            "vocab.txt": vocabulary.encode(),
            "tokenizer_config.json": b'{"do_lower_case": true}',
        }
    )


def row(number: int, texts: Sequence[str], target: Target | None = None) -> Example:
    return Example(
        source="rows.tsv", line=number + 1, id=str(number), texts=tuple(texts), target=target
    )


def tiny_task_model(
    task: Task,
    *,
    vector: VectorSettings | None = None,
    head: HeadSettings | None = None,
    words: int = len(SPECIAL) + len(TASK_WORDS),
    meta_sizes: dict[str, int] | None = None,
    lengths: LengthSettings | None = None,
) -> TaskModel:
    vector = vector or VectorSettings()
    head = head or HeadSettings(dropout=0.0)
    spec = shrunk("bert", vocab_size=words, hidden=32, heads=2, rows=64)
    kind = published_head(task, vector, head)
    heads = []
    if kind is not None:
        outputs = task.outputs if kind in ("sequence", "token") else 2
        heads = [Head(kind=kind, outputs=outputs, dropout=0.0)]
    random = torch.Generator().manual_seed(3)
    spec = replace(spec, dropout=0.0, attention_dropout=0.0, pooler=kind == "sequence")
    model = build("bert", spec, heads=heads, generator=random)
    return task_model(
        model,
        task,
        vector=vector,
        head=head,
        lengths=lengths or LengthSettings(),
        meta_sizes=meta_sizes or {},
        random=random,
    )


def reading_of(model: TaskModel) -> RowReading:
    """What stands between the encoder and a head of settings."""
    head = model.head
    if isinstance(head, VectorHead):
        return head.passages.reading
    assert isinstance(head, RowsHead)
    return head.reading


def mix_of(model: TaskModel) -> LayerMix:
    """The learned mix of all layers."""
    mix = reading_of(model).mix
    assert mix is not None
    return mix


def overfit(model: TaskModel, features: Sequence[Feature], *, steps: int = 60) -> float:
    """Train on one batch until it is known by heart; the mean loss at the end."""
    torch.manual_seed(0)
    batch = task_batch(features)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.0)
    model.train()
    for _ in range(steps):
        part = model.task.loss(model(batch), batch)
        optimizer.zero_grad()
        (part.sum / part.count).backward()
        optimizer.step()
    return part.sum.item() / part.count
