"""Formats of labeled data; each reads lines into examples and rejects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from bertsmith.files.lines import Lines
from bertsmith.labeled.account import RowAccount
from bertsmith.labeled.example import Example
from bertsmith.labeled.formats import (
    answers,
    c3,
    cluewsc,
    conll,
    delimited,
    jsonl,
    spans,
    squad,
    words,
)
from bertsmith.labeled.formats.objects import Build, read_objects
from bertsmith.labeled.read.reject import Reject
from bertsmith.labeled.spec import DataSpec


class Reader(Protocol):
    """What a format offers."""

    def __call__(
        self, lines: Lines, spec: DataSpec, account: RowAccount, *, piece: bool = False
    ) -> Iterator[Example | Reject]:
        """Every row as an example or a reject; `piece`: the lines are a part of a file."""


COLUMNS = ("label", "labels", "number", "choice")
TARGETS_OF: Mapping[str, tuple[str, ...]] = {
    "delimited": COLUMNS,
    "swag": ("choice",),
    "jsonl": COLUMNS,
    "spans": ("tags",),
    "words": ("tags",),
    "cluener": ("tags",),
    "cluewsc": ("label",),
    "answers": ("answers",),
    "conll": ("tags",),
    "squad": ("answers",),
    "c3": ("choice",),
}


def _objects(builder: Callable[[str, DataSpec, RowAccount], Build]) -> Reader:
    """The reader of a format whose rows are JSON objects."""

    def read(
        lines: Lines, spec: DataSpec, account: RowAccount, *, piece: bool = False
    ) -> Iterator[Example | Reject]:
        return read_objects(lines, account, builder(lines.name, spec, account))

    return read


FORMATS: Mapping[str, Reader] = {
    "delimited": delimited.read,
    "swag": delimited.read_swag,
    "jsonl": _objects(jsonl.builder),
    "spans": _objects(spans.builder),
    "words": _objects(words.builder),
    "cluener": _objects(spans.cluener_builder),
    "cluewsc": _objects(cluewsc.builder),
    "answers": _objects(answers.builder),
    "conll": conll.read,
    "squad": squad.read,
    "c3": c3.read,
}
