"""Formats of labeled data; each reads lines into examples and rejects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, Protocol

from bertsmith.files.lines import Lines
from bertsmith.labeled.example import Example
from bertsmith.labeled.formats import (
    clue,
    delimited,
    objects,
    plain_lines,
    questions,
    spans,
    words,
)
from bertsmith.labeled.formats.objects import object_reader
from bertsmith.labeled.read.reject import Reject, RowAccount
from bertsmith.labeled.spec import DataSpec


class Reader(Protocol):
    """What a format offers."""

    def __call__(
        self, lines: Lines, spec: DataSpec, account: RowAccount, *, piece: bool = False
    ) -> Iterator[Example | Reject]:
        """Every row as an example or a reject; `piece`: the lines are a part of a file."""


class Format(NamedTuple):
    """A format: its reader, and the kinds of target that its rows may have."""

    read: Reader
    targets: tuple[str, ...]


COLUMNS = ("label", "labels", "number", "choice")
FORMATS: Mapping[str, Format] = {
    "delimited": Format(delimited.read, COLUMNS),
    "lines": Format(plain_lines.read_lines, ()),
    "labeled-lines": Format(plain_lines.read_labeled_lines, ("label", "labels", "number")),
    "swag": Format(delimited.read_swag, ("choice",)),
    "jsonl": Format(object_reader(objects.builder), COLUMNS),
    "spans": Format(object_reader(spans.spans_builder), ("tags",)),
    "words": Format(object_reader(words.words_builder), ("tags",)),
    "cluener": Format(object_reader(spans.cluener_builder), ("tags",)),
    "cluewsc": Format(object_reader(clue.cluewsc_builder), ("label",)),
    "answers": Format(object_reader(questions.answers_builder), ("answers",)),
    "conll": Format(words.read_conll, ("tags",)),
    "squad": Format(questions.read_squad, ("answers",)),
    "c3": Format(clue.read_c3, ("choice",)),
}
