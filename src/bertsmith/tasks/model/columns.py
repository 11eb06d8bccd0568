"""Further columns of the data: meta features that heads read, auxiliary targets they learn."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from bertsmith.config import Settings
from bertsmith.errors import ConfigError, TextError
from bertsmith.labeled.example import Example
from bertsmith.nn.loss import LossSum
from bertsmith.tasks.feature import Feature
from bertsmith.tasks.task import Task

TASK = "task"  # the name of the main part of the loss
MetaTables = Mapping[str, Mapping[str, int]]


def meta_tables(examples: Sequence[Example], columns: Iterable[str]) -> dict[str, dict[str, int]]:
    """An id for each value of each column, from 1 on; 0 is for unseen values."""
    tables: dict[str, dict[str, int]] = {}
    for column in columns:
        values = sorted({_cell(example, column, "head.meta") for example in examples})
        tables[column] = {value: number for number, value in enumerate(values, start=1)}
    return tables


def with_meta(
    features: Sequence[Feature], examples: Sequence[Example], tables: MetaTables
) -> list[Feature]:
    """The features with the numbers of their examples' columns."""
    if not tables:
        return list(features)
    rows = [
        np.array([table.get(_cell(e, column, "head.meta"), 0) for column, table in tables.items()])
        for e in examples
    ]
    return [replace(feature, meta=rows[feature.example]) for feature in features]


def meta_sizes(tables: MetaTables) -> dict[str, int]:
    """Rows of each embedding."""
    return {column: len(table) + 1 for column, table in tables.items()}


class AuxiliarySettings(Settings):
    """The kind of a column's values, and the weight of its loss next to the task's own."""

    kind: Literal["label", "number"] = "label"
    weight: Annotated[float, Field(gt=0)] = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Auxiliary:
    """A column to learn: one of `labels`, or, without any, a number of this mean and spread."""

    column: str
    labels: tuple[str, ...] = ()
    mean: float = 0.0
    spread: float = 1.0
    weight: float = 0.0  # in training

    @property
    def outputs(self) -> int:
        """One per class, or the number."""
        return len(self.labels) or 1

    def loss(self, logits: Tensor, targets: Tensor) -> LossSum:
        """(E, C) and (E,), nan where a row has none -> LossSum over the rows that have one."""
        there = ~targets.isnan()
        rows, wanted = logits.float()[there], targets[there]
        if self.labels:
            total = F.cross_entropy(rows, wanted.long(), reduction="sum")
        else:
            total = F.mse_loss(rows.squeeze(1), wanted, reduction="sum")
        return LossSum(total, len(wanted))

    def decode(self, logits: Sequence[float]) -> str | float:
        """(C,) -> the label, or the number on the scale of the data."""
        if self.labels:
            return self.labels[int(np.argmax(logits))]
        return float(logits[0]) * self.spread + self.mean

    def to_json(self) -> dict[str, Any]:
        """JSON values."""
        if self.labels:
            return {"labels": list(self.labels)}
        return {"mean": self.mean, "spread": self.spread}


def auxiliary_from(
    examples: Sequence[Example], settings: Mapping[str, AuxiliarySettings], task: Task
) -> tuple[Auxiliary, ...]:
    """The columns that a recipe names, as these training rows have them."""
    if settings and (task.reads == "rows" or not task.kind.pools_passages):
        raise ConfigError(
            "auxiliary targets are learned from one vector per example, which "
            f"{task.name} does not make; leave [auxiliary] out"
        )
    return tuple(_from_column(examples, name, one) for name, one in settings.items())


def auxiliary_from_json(values: Mapping[str, Mapping[str, Any]]) -> tuple[Auxiliary, ...]:
    """From a model folder, by column."""
    return tuple(
        Auxiliary(column=column, labels=tuple(stored["labels"]))
        if "labels" in stored
        else Auxiliary(column=column, mean=stored["mean"], spread=stored["spread"])
        for column, stored in values.items()
    )


def with_auxiliary(
    features: Sequence[Feature], examples: Sequence[Example], columns: Sequence[Auxiliary]
) -> list[Feature]:
    """The features with the targets of their examples' columns; nan for an empty cell."""
    if not columns:
        return list(features)
    places = [{label: at for at, label in enumerate(one.labels)} for one in columns]
    rows = [
        np.array(
            [_target(e, one, place) for one, place in zip(columns, places, strict=True)],
            dtype=np.float32,
        )
        for e in examples
    ]
    return [replace(feature, auxiliary=rows[feature.example]) for feature in features]


def auxiliary_counts(columns: Sequence[Auxiliary], targets: Tensor) -> dict[str, int]:
    """(E, n) -> how many rows have a target in each column."""
    there = (~torch.isnan(targets)).sum(dim=0).tolist()
    return {one.column: int(count) for one, count in zip(columns, there, strict=True)}


def _from_column(
    examples: Sequence[Example], column: str, settings: AuxiliarySettings
) -> Auxiliary:
    if column == TASK:
        raise ConfigError(
            f"auxiliary.{column}: the loss of the task itself is called {column!r}; rename the "
            "column"
        )
    cells = [(example, cell) for example in examples if (cell := _cell(example, column))]
    if settings.kind == "label":
        labels = tuple(sorted({cell for _, cell in cells}))
        if len(labels) < 2:
            raise ConfigError(
                f"auxiliary.{column}: the training rows have {len(labels)} values; a class to "
                "learn needs two or more"
            )
        return Auxiliary(column=column, labels=labels, weight=settings.weight)
    values = [_number(example, column, cell) for example, cell in cells]
    mean = math.fsum(values) / max(len(values), 1)
    spread = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / max(len(values), 1))
    if spread == 0.0:
        raise ConfigError(
            f"auxiliary.{column}: the training rows have no two different numbers; nothing can be "
            "learned from it"
        )
    return Auxiliary(column=column, mean=mean, spread=spread, weight=settings.weight)


def _target(example: Example, column: Auxiliary, place: Mapping[str, int]) -> float:
    cell = _cell(example, column.column)
    if not cell:
        return math.nan
    if column.labels:
        return place.get(cell, math.nan)
    return (_number(example, column.column, cell) - column.mean) / column.spread


def _cell(example: Example, column: str, setting: str = "[auxiliary]") -> str:
    if column not in example.extra:
        raise ConfigError(
            f"{example.place}: there is no column {column!r} for {setting}; further columns of "
            f"this row: {', '.join(example.extra) or 'none'}. Give rows that have it: a file with "
            "that column, or from Python an Example with `extra`"
        )
    return example.extra[column]


def _number(example: Example, column: str, cell: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise TextError(
            f"{example.place}, column {column}: {cell!r} is no number; correct it, leave the cell "
            f"empty, or set auxiliary.{column}.kind = label"
        )
    return value
