"""Rows that are JSON objects, one per line or the elements of one list; texts under keys."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping

from bertsmith.errors import ConfigError
from bertsmith.files.faults import BadRowError
from bertsmith.files.lines import Lines
from bertsmith.files.strict_json import (
    JsonDocument,
    may_hold_surrogates,
    parse_row,
    refuse_surrogates,
    type_name,
    wrong_type,
)
from bertsmith.labeled.example import Example, Target
from bertsmith.labeled.read.reject import Reject, RowAccount, check_texts, reject_of
from bertsmith.labeled.read.targets import Read, json_target, label_reader, marked_labels
from bertsmith.labeled.spec import DataSpec
from bertsmith.wording import shown

Row = Mapping[str, object]
Units = tuple[tuple[int, int], ...]
Parts = tuple[tuple[str, ...], Target | None, Mapping[str, str], Units]
"""Texts, target, extra and units of an example."""
Build = Callable[[int, Row], Parts]
"""From a line number and its row to the parts of the example."""
Builder = Callable[[str, DataSpec, RowAccount], Build]
"""From the file name and its spec to the function for each row."""


def object_reader(builder: Builder) -> Callable[..., Iterator[Example | Reject]]:
    """The reader of a format whose rows are JSON objects."""

    def read(
        lines: Lines, spec: DataSpec, account: RowAccount, *, piece: bool = False
    ) -> Iterator[Example | Reject]:
        build = builder(lines.name, spec, account)
        listed = lines.first_character() == "["
        for line, raw, row in _listed(lines) if listed else _lined(lines, account):
            try:
                if isinstance(row, BadRowError):
                    raise row
                account.raw = raw
                texts, target, extra, units = build(line, row)
                yield Example(
                    source=lines.name,
                    line=line,
                    id=id_of(row, spec.id, line),
                    texts=texts,
                    target=target,
                    extra=extra,
                    units=units,
                )
            except BadRowError as fault:
                yield reject_of(fault, lines.name, line, raw, part="field")

    return read


def _lined(lines: Lines, account: RowAccount) -> Iterator[tuple[int, str, Row | BadRowError]]:
    for line in lines:
        if not isinstance(line, str):
            yield lines.number, line.raw, line
        elif not line or line.isspace():
            account.blank += 1
        else:
            try:
                row: Row | BadRowError = parse_row(line)
            except BadRowError as fault:
                row = fault
            yield lines.number, line, row


def _listed(lines: Lines) -> Iterator[tuple[int, str, Row | BadRowError]]:
    document = JsonDocument.of(lines)
    halves = may_hold_surrogates(document.text)
    for start, end, value in document.elements():
        row: Row | BadRowError
        if isinstance(value, dict):
            row = value
            try:
                if halves:
                    refuse_surrogates(value, "")
            except BadRowError as fault:
                row = fault
        else:
            row = BadRowError(
                f"the row is {type_name(value)}, not an object",
                'write each row as one JSON object such as {"text": ...}',
            )
        yield document.line_at(start), document.text[start:end], row


def value_of(row: Row, field: str) -> object:
    """The value under a key, which must be there."""
    if field in row:
        return row[field]
    keys = ", ".join(shown(key) for key in list(row)[:12])
    raise BadRowError(
        f"the key {shown(field)} is missing; the keys are {keys or 'none'}",
        "add it, or name another",
        column=field,
    )


def string(row: Row, field: str, *, joined: bool = False) -> str:
    """The string under a key; `joined` also takes a list of strings."""
    value = row.get(field)
    if type(value) is str:
        return value
    value = value_of(row, field)
    if joined and isinstance(value, list) and all(type(item) is str for item in value):
        return " ".join(value)
    raise wrong_type(value, "a string", "put it in double quotes", field)


def text_of(row: Row, field: str, spec: DataSpec) -> str:
    """The one text of a row."""
    text = string(row, field)
    if not text or "\0" in text or text.isspace():
        check_texts((text,), (field,), keep_empty=spec.empty == "keep")
    return text


def plain(value: object) -> str:
    """Any JSON value as an extra column shows it; objects stay JSON."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return ""
    if isinstance(value, dict) or (isinstance(value, list) and any(map(_nested, value))):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return " ".join(plain(item) for item in value)
    return str(value)


def _nested(value: object) -> bool:
    return isinstance(value, dict | list)


def id_of(row: Row, field: str | int | None, line: int) -> str:
    """The row's own id, else its line."""
    value = row.get(str(field)) if field is not None else None
    if value is None:
        return str(line)
    return str(value) if type(value) is int else plain(value)


def builder(source: str, spec: DataSpec, account: RowAccount) -> Build:
    """Builds the examples of JSONL with texts and labels under keys."""
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

    def build(line: int, row: Row) -> Parts:
        texts = texts_of(row, fields)
        for text in texts:
            if not text or "\0" in text or text.isspace():
                names = fields if len(fields) == len(texts) else [fields[-1]] * len(texts)
                check_texts(texts, names, keep_empty=keep_empty)
                break
        extras = {name: plain(row.get(name)) for name in extra}
        return texts, target(row, len(texts) - 1), extras, ()

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
            [plain(row.get(field)) for field in fields], fields
        )
    field = fields[0]
    readers: dict[int, Read] = {}

    def read(row: Row, choices: int) -> Target | None:
        reader = readers.get(choices)
        if reader is None:
            reader = readers[choices] = label_reader(spec, field, choices)
        target = json_target(value_of(row, field), reader, spec, field)
        account.unlabeled += target is None
        return target

    return read
