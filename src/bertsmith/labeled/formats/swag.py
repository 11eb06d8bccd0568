"""SWAG as published: a CSV with the endings of a sentence in columns of their own."""

from __future__ import annotations

from collections.abc import Iterator

from bertsmith.files.lines import Lines
from bertsmith.labeled.account import RowAccount
from bertsmith.labeled.example import Example
from bertsmith.labeled.formats import delimited
from bertsmith.labeled.read.reject import Reject
from bertsmith.labeled.spec import DataSpec

BEGUN = "sent2"
COLUMNS = ("sent1", BEGUN, "ending0", "ending1", "ending2", "ending3")


def read(
    lines: Lines, spec: DataSpec, account: RowAccount, *, piece: bool = False
) -> Iterator[Example | Reject]:
    """The rows of a SWAG file: the first sentence, then the second one with each of its endings."""
    text = tuple(column for column in (spec.text or COLUMNS) if column != BEGUN)
    with_choices = spec.model_copy(
        update={"text": text, "extra": (BEGUN, *(spec.extra or ())), "task": "choose"}
    )
    for item in delimited.read(lines, with_choices, account, piece=piece):
        if isinstance(item, Reject):
            yield item
            continue
        begun = item.extra[BEGUN]
        context, *endings = item.texts
        yield Example(
            source=item.source,
            line=item.line,
            id=item.id,
            texts=(context, *(f"{begun} {ending}" if begun else ending for ending in endings)),
            target=item.target,
            extra={name: cell for name, cell in item.extra.items() if name != BEGUN},
        )
