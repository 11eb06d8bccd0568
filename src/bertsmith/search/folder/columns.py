"""The columns of a segment as codes, so that a filter looks at each distinct value once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertsmith.search.filters import Where

COLUMNS, CELLS = "columns.json", "cells.u32"
FILES = (COLUMNS, CELLS)


def column_files(metas: Sequence[Mapping[str, str]]) -> dict[str, bytes]:
    """Rows of columns -> the files of a segment.

    columns.json has [name, [value, ...]] per column; cells (C, n) hold the number of a row's value
    counted from 1, and 0 where it has none.
    """
    values: dict[str, dict[str, int]] = {}
    cells: dict[str, NDArray[np.uint32]] = {}
    for row, meta in enumerate(metas):
        for name, value in meta.items():
            if name not in values:
                values[name] = {}
                cells[name] = np.zeros(len(metas), dtype="<u4")
            known = values[name]
            cells[name][row] = known.setdefault(value, len(known) + 1)
    listed = [[name, list(known)] for name, known in values.items()]
    return {
        COLUMNS: json.dumps(listed, ensure_ascii=False).encode() + b"\n",
        CELLS: b"".join(cells[name].tobytes() for name in values),
    }


def matching_rows(
    listed: list[tuple[str, list[str]]], cells: NDArray[Any], rows: int, where: Where
) -> NDArray[np.bool_]:
    """(n,) which rows of a segment meet every condition; `cells` is (C * n,)."""
    table = cells.reshape(len(listed), rows) if listed else cells
    places = {name: i for i, (name, _) in enumerate(listed)}
    alive = np.ones(rows, dtype=bool)
    for condition in where:
        place = places.get(condition.column)
        absent = condition.matches({})
        if place is None:
            alive &= absent
            continue
        name, values = listed[place]
        verdicts = [absent, *(condition.matches({name: value}) for value in values)]
        alive &= np.array(verdicts)[table[place]]
    return alive
