"""Filters as SQL: names of columns and values are parameters, never part of a statement.

The numbers of cells were read by Python when the rows were written, so that a comparison means the
same as in a folder, and no cell can make a cast fail.
"""

from __future__ import annotations

from typing import Any

from psycopg import sql

from bertsmith.search.filters import Operator, Where

_COMPARISONS: dict[Operator, sql.SQL] = {
    "<": sql.SQL("(numbers ->> %s)::float8 < %s"),
    "<=": sql.SQL("(numbers ->> %s)::float8 <= %s"),
    ">": sql.SQL("(numbers ->> %s)::float8 > %s"),
    ">=": sql.SQL("(numbers ->> %s)::float8 >= %s"),
    "=": sql.SQL("meta ->> %s = ANY(%s)"),
    "!=": sql.SQL("(meta ->> %s = ANY(%s)) IS NOT TRUE"),
}


def condition(where: Where, next_id: int) -> tuple[sql.Composed, list[Any]]:
    """What follows WHERE, and its parameters: visible rows that meet every condition."""
    parts: list[sql.Composable] = [sql.SQL("id < %s")]
    values: list[Any] = [next_id]
    for one in where:
        parts.append(_COMPARISONS[one.operator])
        wanted: Any = list(one.values) if one.operator in ("=", "!=") else float(one.values[0])
        values += [one.column, wanted]
    return sql.SQL(" AND ").join(parts), values
