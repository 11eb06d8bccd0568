"""JSON objects with texts and labels under keys: JSONL as people write it, CLUE as published."""

from __future__ import annotations

from collections.abc import Callable

from bertsmith.errors import ConfigError
from bertsmith.files.faults import BadRowError
from bertsmith.files.strict_json import type_name
from bertsmith.labeled.account import RowAccount
from bertsmith.labeled.example import Example, Target
from bertsmith.labeled.formats.objects import (
    Build,
    Row,
    id_of,
    missing,
    plain,
    string,
)
from bertsmith.labeled.read.reject import check_texts
from bertsmith.labeled.read.targets import Read, json_target, label_reader, marked_labels
from bertsmith.labeled.spec import DataSpec


def builder(source: str, spec: DataSpec, account: RowAccount) -> Build:
    """Builds the examples of a file of JSON objects."""
    fields = _names(spec.text, "text", source)
    if not fields:
        raise ConfigError(f"{source}: no key for the text was chosen; set --text NAME")
    if spec.has_choices and len(fields) < 2:
        raise ConfigError(
            f"{source}: multiple choice needs the key of a context or a question, then that of the "
            "choices; set --text"
        )
    extra = list(_names(spec.extra, "extra", source))
    if spec.group is not None and str(spec.group) not in extra:
        extra.append(str(spec.group))
    keep_empty = spec.empty == "keep"
    texts_of = _choices if spec.has_choices else _texts
    target = _target_reader(spec, _names(spec.label, "label", source), account)

    def build(line: int, row: Row) -> Example:
        texts = texts_of(row, fields)
        for text in texts:
            if not text or "\0" in text or text.isspace():
                names = fields if len(fields) == len(texts) else [fields[-1]] * len(texts)
                check_texts(texts, names, keep_empty=keep_empty)
                break
        return Example(
            source=source,
            line=line,
            id=id_of(row, spec.id, line),
            texts=texts,
            target=target(row, len(texts) - 1),
            extra={name: plain(row.get(name)) for name in extra},
        )

    return build


def _names(columns: tuple[str | int, ...] | None, what: str, source: str) -> list[str]:
    for column in columns or ():
        if isinstance(column, int):
            raise ConfigError(
                f"{source}: {what} {column} is a number, but JSON objects have keys; give a name"
            )
    return [str(column) for column in columns or ()]


def _texts(row: Row, fields: list[str]) -> tuple[str, ...]:
    if len(fields) == 1:
        return (string(row, fields[0], joined=True),)
    return tuple(string(row, field, joined=True) for field in fields)


def _choices(row: Row, fields: list[str]) -> tuple[str, ...]:
    """The context, then the choices: a list under the last key, or one key for each.

    With a question between them, each choice is the question and its answer.
    """
    last = row.get(fields[-1])
    if not isinstance(last, list):
        return _texts(row, fields)
    if len(last) < 2 or not all(type(item) is str for item in last):
        raise BadRowError(
            f"it is {type_name(last)} of {len(last)}, not of two strings or more",
            "write all choices as strings",
            column=fields[-1],
        )
    context, *questions = (string(row, field) for field in fields[:-1])
    question = "".join(f"{text} " for text in questions)
    return (context, *(question + choice for choice in last))


def _target_reader(
    spec: DataSpec, fields: list[str], account: RowAccount
) -> Callable[[Row, int], Target | None]:
    if not fields:
        return lambda row, choices: None
    if len(fields) > 1:
        return lambda row, choices: marked_labels(
            [plain(row[field]) if field in row else "" for field in fields], fields
        )
    field = fields[0]
    readers: dict[int, Read] = {}

    def read(row: Row, choices: int) -> Target | None:
        if field not in row:
            raise missing(row, field)
        reader = readers.get(choices)
        if reader is None:
            reader = readers[choices] = label_reader(spec, field, choices)
        target = json_target(row[field], reader, spec, field)
        account.unlabeled += target is None
        return target

    return read
