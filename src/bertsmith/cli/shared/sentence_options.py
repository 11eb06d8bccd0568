"""How a file of sentence rows is read: options of the commands on sentence vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from bertsmith.cli.shared.data_options import (
    Delimiter,
    Encoding,
    Header,
    OnError,
    Quoting,
    Text,
    data_spec,
    given_settings,
)
from bertsmith.cli.shared.options import PositiveLabel
from bertsmith.setting import DATA, Setting

if TYPE_CHECKING:
    from bertsmith.labeled.spec import DataSpec

RowKind = Annotated[
    Literal["scores", "labels", "triplets", "pairs", "texts"] | None,
    Setting(
        "What a row is: scores or labels (of pairs), triplets, pairs (question and answer), texts. "
        "Detected if unset.",
        DATA,
    ),
]
ScoreColumn = Annotated[
    list[str] | None,
    Setting("Label column, by name or number; or that of the scores.", DATA, metavar="COLUMN"),
]
RowFormat = Annotated[
    Literal["delimited", "jsonl", "lines"] | None,
    Setting(
        "File format: delimited, jsonl; lines: one text per line, tabs and all. Detected if unset.",
        DATA,
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceRowOptions:
    """What rows are and how they are read; what is unset is detected and printed."""

    row_kind: RowKind = None
    text: Text = None
    label: ScoreColumn = None
    positive: PositiveLabel = None
    format: RowFormat = None
    header: Header = None
    delimiter: Delimiter = None
    encoding: Encoding = None
    on_error: OnError = "stop"
    quoting: Quoting = None

    @property
    def by_lines(self) -> bool:
        """Whether each line is one text."""
        return self.format == "lines"

    def spec(self) -> DataSpec:
        """The options that were given, as a data spec."""
        return data_spec(given_settings(self))
