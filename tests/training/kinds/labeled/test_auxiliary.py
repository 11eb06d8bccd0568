"""Auxiliary targets: further columns are learned beside the task, and change nothing else."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_finetuning import RECIPE, SHORT, rows, tiny_job
from tiny_tasks import tiny_task_model, word_tokenizer
from torch.nn import functional as F

from bertsmith.errors import ConfigError, TextError
from bertsmith.labeled.example import Example
from bertsmith.runtime.load_predictor import load_predictor
from bertsmith.tasks.batch import task_batch
from bertsmith.tasks.classify import Classify
from bertsmith.tasks.length import LengthSettings
from bertsmith.tasks.model.columns import (
    Auxiliary,
    AuxiliarySettings,
    auxiliary_counts,
    auxiliary_from,
    auxiliary_from_json,
    with_auxiliary,
)
from bertsmith.tasks.model.from_settings import task_model
from bertsmith.tasks.model.heads import TextsHead
from bertsmith.tasks.model.layers import HeadSettings
from bertsmith.tasks.model.text_vector import VectorSettings
from bertsmith.tasks.tag.tag import Tag
from bertsmith.training.kinds.labeled.learner import finetune

TASK = Classify(labels=("no", "yes"))
BOTH = {
    "color": AuxiliarySettings(weight=0.5),
    "size": AuxiliarySettings(kind="number", weight=0.2),
}


def further(count: int, seed: int = 0) -> list[Example]:
    """Rows whose further columns follow from their words; every seventh has none."""
    found = []
    for number, row in enumerate(rows(count, seed=seed)):
        words = row.texts[0].split()
        color = "warm" if "red" in words else "cold"
        size = str(3.5 * len(words))
        empty = number % 7 == 6
        extra = {"color": "" if empty else color, "size": "" if empty else size}
        found.append(replace(row, extra=extra))
    return found


def test_columns_become_classes_and_scales_and_come_back() -> None:
    examples = further(40)
    color, size = auxiliary_from(examples, BOTH, TASK)
    assert (color.labels, color.outputs, color.weight) == (("cold", "warm"), 2, 0.5)
    values = [float(row.extra["size"]) for row in examples if row.extra["size"]]
    assert size.mean == pytest.approx(np.mean(values))
    assert size.spread == pytest.approx(np.std(values))
    told = json.loads(json.dumps({one.column: one.to_json() for one in (color, size)}))
    again = auxiliary_from_json(told)
    assert [replace(one, weight=0.0) for one in (color, size)] == list(again)
    assert color.decode([0.1, 2.0]) == "warm"
    assert size.decode([0.0]) == pytest.approx(size.mean)


def test_empty_cells_count_for_nothing() -> None:
    examples = further(14)
    columns = auxiliary_from(examples, BOTH, TASK)
    task = Classify(labels=("no", "yes"))
    features = task.features(examples, word_tokenizer(), LengthSettings())
    batch = task_batch(with_auxiliary(features, examples, columns))
    assert auxiliary_counts(columns, batch.auxiliary) == {"color": 12, "size": 12}
    logits = torch.randn(14, 2)
    part = columns[0].loss(logits, batch.auxiliary[:, 0])
    there = [n for n in range(14) if n % 7 != 6]
    wanted = torch.tensor([int(examples[n].extra["color"] == "warm") for n in there])
    assert part.count == 12
    assert part.sum.item() == pytest.approx(
        F.cross_entropy(logits[there], wanted, reduction="sum").item(), rel=1e-5
    )
    numbers = torch.randn(14, 1)
    part = columns[1].loss(numbers, batch.auxiliary[:, 1])
    aims = [(float(examples[n].extra["size"]) - columns[1].mean) / columns[1].spread for n in there]
    apart = numbers[there, 0] - torch.tensor(aims)
    assert part.sum.item() == pytest.approx(apart.square().sum().item(), rel=1e-4)


@pytest.mark.parametrize("pooling", ["published", "mean"])
def test_the_task_says_the_same_with_and_without_them(pooling: str) -> None:
    examples = further(8)
    task = Classify(labels=("no", "yes"))
    features = task.features(examples, word_tokenizer(), LengthSettings(max_length=6, stride=2))
    assert len(features) > len(examples)  # windows are joined for both
    batch = task_batch(features)
    model = tiny_task_model(task, vector=VectorSettings(pooling=pooling)).eval()
    plain = model(batch)
    columns = auxiliary_from(examples, BOTH, TASK)
    both = task_model(
        model.model,
        task,
        vector=VectorSettings(pooling=pooling),
        head=HeadSettings(dropout=0.0),
        lengths=LengthSettings(),
        meta_sizes={},
        auxiliary=columns,
    ).eval()
    if isinstance(model.head, TextsHead) and isinstance(both.head, TextsHead):
        both.head.own.load_state_dict(model.head.own.state_dict())
    logits, more = both.with_auxiliary(batch)
    assert torch.equal(logits, plain)
    assert [tuple(one.shape) for one in more] == [(8, 2), (8, 1)]


@pytest.mark.parametrize(
    ("column", "settings"),
    [
        ("color", AuxiliarySettings(weight=1.0)),
        ("size", AuxiliarySettings(kind="number", weight=0.3)),
    ],
)
def test_a_column_is_learned_reported_by_name_and_stored(
    source: str, tmp_path: Path, column: str, settings: AuxiliarySettings
) -> None:
    longer = RECIPE.plan.model_copy(update={"epochs": 12.0})
    recipe = RECIPE.model_copy(update={"auxiliary": {column: settings}, "plan": longer})
    what = tiny_job(
        source, tmp_path / "out", recipe=recipe, train=further(160), dev=further(40, seed=1)
    )
    done = finetune(what)
    logged = [json.loads(line) for line in (what.out / "log.jsonl").read_text().splitlines()]
    steps = [row["losses"] for row in logged if row.get("kind") == "train"]
    assert all(set(losses) == {"task", column} for losses in steps)
    begun, ended = (np.mean([one[column] for one in part]) for part in (steps[:2], steps[-2:]))
    assert ended < 0.5 * begun
    predictor = load_predictor(what.out)
    said = predictor.predict([row.texts for row in what.rows.dev])  # no column is needed
    assert [one.value for one in said] == [one.value for one in done.finished.predictions]
    guessed = predictor.auxiliary([row.texts for row in what.rows.dev])
    known = [
        (row, one) for row, one in zip(what.rows.dev, guessed, strict=True) if row.extra[column]
    ]
    if column == "color":
        assert np.mean([row.extra["color"] == one["color"] for row, one in known]) > 0.85
    else:
        off = np.mean([abs(float(row.extra["size"]) - one["size"]) for row, one in known])
        assert off < 0.6 * np.std([float(row.extra["size"]) for row, _ in known])


def test_several_columns_each_have_a_part_of_the_loss(source: str, tmp_path: Path) -> None:
    recipe = SHORT.model_copy(update={"auxiliary": BOTH})
    what = tiny_job(source, tmp_path / "out", recipe=recipe, train=further(40), dev=further(20))
    finetune(what)
    logged = [json.loads(line) for line in (what.out / "log.jsonl").read_text().splitlines()]
    first = next(row for row in logged if row.get("kind") == "train")
    assert set(first["losses"]) == {"task", "color", "size"}
    assert set(load_predictor(what.out).auxiliary(["red bird"])[0]) == {"color", "size"}


def test_a_model_without_them_says_so(source: str, tmp_path: Path) -> None:
    finetune(tiny_job(source, tmp_path / "out", recipe=SHORT))
    with pytest.raises(ConfigError, match=r"learned no further columns"):
        load_predictor(tmp_path / "out").auxiliary(["red"])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"task": AuxiliarySettings()}, "rename the column"),
        ({"shape": AuxiliarySettings()}, r"rows.tsv, line 1: there is no column 'shape'"),
        ({"color": AuxiliarySettings(kind="number")}, r"line 1, column color: .* is no number"),
        ({"same": AuxiliarySettings()}, "have 1 values"),
        ({"same": AuxiliarySettings(kind="number")}, "no two different numbers"),
    ],
)
def test_columns_that_cannot_be_learned_are_refused(
    columns: dict[str, AuxiliarySettings], message: str
) -> None:
    examples = [replace(row, extra={**row.extra, "same": "1"}) for row in further(10)]
    with pytest.raises((ConfigError, TextError), match=message):
        auxiliary_from(examples, columns, TASK)


def test_tasks_without_one_vector_refuse_them() -> None:
    with pytest.raises(ConfigError, match="which tag does not make"):
        auxiliary_from(further(4), BOTH, Tag(labels=("O",)))


def test_values_never_seen_in_training_ask_for_nothing() -> None:
    columns = (Auxiliary(column="color", labels=("cold", "warm")),)
    odd = replace(further(1)[0], extra={"color": "grey"})
    task = Classify(labels=("no", "yes"))
    features = task.features([odd], word_tokenizer(), LengthSettings())
    assert math.isnan(with_auxiliary(features, [odd], columns)[0].auxiliary[0])
