"""Further columns of the data as numbers, for embeddings beside the vector of a text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from bertsmith.errors import ConfigError
from bertsmith.labeled.example import Example
from bertsmith.tasks.feature import Feature

MetaTables = Mapping[str, Mapping[str, int]]


def meta_tables(examples: Sequence[Example], columns: Iterable[str]) -> dict[str, dict[str, int]]:
    """A number for each value of each column, from 1 on; 0 is for values never seen."""
    tables: dict[str, dict[str, int]] = {}
    for column in columns:
        values = sorted({_value(example, column) for example in examples})
        tables[column] = {value: number for number, value in enumerate(values, start=1)}
    return tables


def with_meta(
    features: Sequence[Feature], examples: Sequence[Example], tables: MetaTables
) -> list[Feature]:
    """The features with the numbers of their examples' columns."""
    if not tables:
        return list(features)
    rows = [
        np.array([table.get(_value(e, column), 0) for column, table in tables.items()])
        for e in examples
    ]
    return [replace(feature, meta=rows[feature.example]) for feature in features]


def meta_sizes(tables: MetaTables) -> dict[str, int]:
    """Rows of each embedding."""
    return {column: len(table) + 1 for column, table in tables.items()}


def _value(example: Example, column: str) -> str:
    if column not in example.extra:
        raise ConfigError(
            f"{example.place}: there is no column {column!r} for head.meta; "
            f"further columns of this row: {', '.join(example.extra) or 'none'}. Give rows that "
            "have it: a file with that column, or from Python an Example with `extra`"
        )
    return example.extra[column]
