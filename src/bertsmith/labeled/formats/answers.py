"""Questions, one per line: {"question", "context", "answers": {"text": [], "answer_start": []}}."""

from __future__ import annotations

from collections.abc import Sequence

from bertsmith.files.faults import BadRowError
from bertsmith.files.strict_json import type_name
from bertsmith.labeled.account import RowAccount
from bertsmith.labeled.example import Answers, Example
from bertsmith.labeled.formats.objects import (
    Build,
    Row,
    id_of,
    missing,
    plain,
    text_of,
)
from bertsmith.labeled.read.answers import Given, answer_pair, placed
from bertsmith.labeled.spec import DataSpec


def builder(source: str, spec: DataSpec, account: RowAccount) -> Build:
    """Builds the examples of a file of questions; an empty list of answers means none."""
    question, context = (str(field) for field in (spec.text or ("question", "context")))
    field = str(spec.label[0]) if spec.label else None

    def build(line: int, row: Row) -> Example:
        keep = spec.empty == "keep"
        texts = (
            text_of(row, question, keep_empty=keep),
            text_of(row, context, keep_empty=keep),
        )
        name = id_of(row, spec.id, line)
        target: Answers | None = None
        if field is not None:
            given = _given(row, field)
            target = placed(texts[1], given, account, name=name, field=field)
        group = spec.group if isinstance(spec.group, str) else "title"
        return Example(
            source=source,
            line=line,
            id=name,
            texts=texts,
            target=target,
            extra={group: plain(row[group])} if group in row else {},
        )

    return build


def _given(row: Row, field: str) -> Given:
    if field not in row:
        raise missing(row, field)
    value = row[field]
    if isinstance(value, list):
        return [_one(item, f"{field}[{number}]") for number, item in enumerate(value)]
    if not isinstance(value, dict):
        raise BadRowError(
            f"it is {type_name(value)}",
            'write {"text": [...], "answer_start": [...]}, both empty for no answer',
            column=field,
        )
    texts, starts = (_list(value, key, field) for key in ("text", "answer_start"))
    if len(texts) != len(starts):
        raise BadRowError(
            f"{len(texts)} texts and {len(starts)} places", "write as many of each", column=field
        )
    return [
        answer_pair(text, start, f"{field}[{number}]")
        for number, (text, start) in enumerate(zip(texts, starts, strict=True))
    ]


def _one(item: object, at: str) -> tuple[str, int | None]:
    if isinstance(item, dict):
        return answer_pair(item.get("text"), item.get("answer_start"), at)
    return answer_pair(item, None, at)


def _list(value: dict[str, object], key: str, field: str) -> Sequence[object]:
    items = value.get(key)
    if isinstance(items, list):
        return items
    raise BadRowError(
        f"it is {type_name(items)}, not a list", "write a list", column=f"{field}.{key}"
    )
