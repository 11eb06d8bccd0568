"""The options that say how a file of rows is read, alike in finetune, evaluate and predict."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bertsmith.errors import ConfigError

if TYPE_CHECKING:
    from bertsmith.labeled.spec import DataSpec

Names = list[str] | None
Text = Annotated[
    Names,
    typer.Option(
        "--text", metavar="COLUMN", help="A column with a text, by name or number from 1; repeat."
    ),
]
Label = Annotated[
    Names, typer.Option("--label", metavar="COLUMN", help="The column with the label; repeat.")
]
Task = Annotated[
    str | None,
    typer.Option(
        "--task",
        metavar="TASK",
        help="classify, multilabel, regress, tag, answer or choose; guessed from the labels if "
        "unset.",
    ),
]
Form = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORM",
        help="delimited, jsonl, conll, squad, spans, words, cluener, cluewsc, answers, swag, c3; "
        "lines: one text a line.",
    ),
]
Encoding = Annotated[str | None, typer.Option("--encoding", help="utf-8 unless said otherwise.")]
Delimiter = Annotated[
    str | None, typer.Option("--delimiter", help="What parts columns: tab, comma, or a character.")
]
Quoting = Annotated[
    Literal["none", "double"] | None,
    typer.Option("--quoting", help="none: quotes are text; double: as in CSV."),
]
Header = Annotated[
    bool | None, typer.Option("--header/--no-header", help="Whether the first row names columns.")
]
Separator = Annotated[
    str | None, typer.Option("--label-separator", help="What parts several labels in a cell.")
]
Known = Annotated[
    Names, typer.Option("--labels", metavar="LABEL", help="The labels there are; repeat.")
]
NoLabel = Annotated[
    Names, typer.Option("--no-label", metavar="VALUE", help="What stands for unlabeled; repeat.")
]
FirstChoice = Annotated[
    int | None, typer.Option("--first-choice", min=0, max=1, help="How the first choice is called.")
]
Identity = Annotated[str | None, typer.Option("--id", metavar="COLUMN", help="The row's own id.")]
Extra = Annotated[
    Names, typer.Option("--extra", metavar="COLUMN", help="Further columns to read; repeat.")
]
Group = Annotated[
    str | None,
    typer.Option("--group", metavar="COLUMN", help="Rows of a group stay on one side of a split."),
]
Empty = Annotated[
    Literal["reject", "keep"] | None, typer.Option("--empty", help="Rows with an empty text.")
]
Scheme = Annotated[
    Literal["bio", "iob1", "bioes", "bilou", "bmes", "io", "plain"] | None,
    typer.Option("--scheme", help="How tags mark spans."),
]
WordPrefix = Annotated[
    str | None, typer.Option("--word-prefix", help="What stands before every word (WikiANN: en:).")
]
Joiner = Annotated[
    str | None, typer.Option("--joiner", help="CoNLL: what stands between two words.")
]
SpanEnd = Annotated[
    Literal["exclusive", "inclusive"] | None,
    typer.Option("--span-end", help="Whether the end of a span belongs to it."),
]
Overlap = Annotated[
    Literal["longest", "reject"] | None, typer.Option("--overlap", help="Spans inside others.")
]
Language = Annotated[str | None, typer.Option("--language", help="en, zh, ...; guessed if unset.")]
OnError = Annotated[
    Literal["stop", "skip"],
    typer.Option("--on-error", help="Rows that cannot be used: stop, or skip and write them out."),
]

SPELLED = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " ", "nothing": ""}
COLUMNS = ("text", "label", "extra")
SINGLE = ("id", "group")
LISTS = ("labels", "no_label")
CHARACTERS = ("delimiter", "joiner", "label_separator")
LINES = "lines"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How rows are read; what is unset is guessed and printed."""

    text: Text = None
    label: Label = None
    task: Task = None
    format: Form = None
    encoding: Encoding = None
    delimiter: Delimiter = None
    quoting: Quoting = None
    header: Header = None
    label_separator: Separator = None
    labels: Known = None
    no_label: NoLabel = None
    first_choice: FirstChoice = None
    id: Identity = None
    extra: Extra = None
    group: Group = None
    empty: Empty = None
    scheme: Scheme = None
    word_prefix: WordPrefix = None
    joiner: Joiner = None
    span_end: SpanEnd = None
    overlap: Overlap = None
    language: Language = None
    on_error: OnError = "stop"

    @property
    def by_lines(self) -> bool:
        """Whether each line is one text, whatever stands in it."""
        return self.format == LINES

    def labeled(self) -> DataSpec:
        """What was set, for rows that must have labels."""
        if self.by_lines:
            raise ConfigError("--format lines reads texts without labels; it is for predict alone")
        return self.spec()

    def spec(self) -> DataSpec:
        """What was set, as readers take it."""
        from bertsmith.config import validated
        from bertsmith.labeled.spec import DataSpec

        values = {one.name: getattr(self, one.name) for one in fields(self)}
        values.pop("on_error")
        if self.by_lines:
            values["format"] = None
        given = {name: _value(name, value) for name, value in values.items() if value is not None}
        if self.task is not None:
            from bertsmith.labeled.targets import target_setting
            from bertsmith.tasks.kinds import task_kind

            given |= target_setting(self.task, task_kind(self.task).target)
        return validated(DataSpec, given, "the options of the data")


def _value(name: str, value: Any) -> Any:
    if name in COLUMNS:
        return tuple(_column(one) for one in value)
    if name in SINGLE:
        return _column(value)
    if name in LISTS:
        return tuple(value)
    return SPELLED.get(value, value) if name in CHARACTERS else value


def _column(name: str) -> str | int:
    """A number counts columns; anything else is a name."""
    return int(name) if name.isdecimal() and int(name) > 0 else name
