"""One file per format; each reads lines into examples and rejects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from bertsmith.files.lines import Lines
from bertsmith.labeled.account import RowAccount
from bertsmith.labeled.example import Example
from bertsmith.labeled.formats import (
    answers,
    c3,
    cluener,
    cluewsc,
    conll,
    delimited,
    jsonl,
    spans,
    squad,
    swag,
    words,
)
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
FORMATS: Mapping[str, Reader] = {
    "delimited": delimited.read,
    "swag": swag.read,
    "jsonl": jsonl.read,
    "spans": spans.read,
    "words": words.read,
    "cluener": cluener.read,
    "cluewsc": cluewsc.read,
    "answers": answers.read,
    "conll": conll.read,
    "squad": squad.read,
    "c3": c3.read,
}
