"""How a file of labeled rows is read: options of finetune, evaluate, predict and others."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bertsmith.cli.shared.options import DATA, RARE_DATA
from bertsmith.errors import ConfigError

if TYPE_CHECKING:
    from bertsmith.labeled.spec import DataSpec

Names = list[str] | None


def _data(*names: str, help: str, metavar: str | None = None) -> Any:
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=DATA)


def _rare(*names: str, help: str, metavar: str | None = None) -> Any:
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=RARE_DATA)


Text = Annotated[
    Names,
    _data("--text", metavar="COLUMN", help="Text column, by name or number from 1; repeatable."),
]
Label = Annotated[
    Names, _data("--label", metavar="COLUMN", help="Label column, by name or number; repeatable.")
]
Task = Annotated[
    str | None,
    _data(
        "--task",
        metavar="TASK",
        help="classify, multilabel, regress, tag, answer or choose; inferred from the labels if "
        "unset.",
    ),
]
Form = Annotated[
    str | None,
    _data(
        "--format",
        metavar="FORMAT",
        help="delimited, jsonl, conll, squad, spans, words, cluener, cluewsc, answers, swag, c3; "
        "lines: one text per line. Detected if unset.",
    ),
]
Header = Annotated[
    bool | None, _data("--header/--no-header", help="Whether the first row names the columns.")
]
Delimiter = Annotated[
    str | None, _data("--delimiter", help="Column delimiter: tab, comma, or a character.")
]
Encoding = Annotated[str | None, _data("--encoding", help="Encoding of the files; utf-8 if unset.")]
OnError = Annotated[
    Literal["stop", "skip"],
    _data("--on-error", help="Invalid rows: stop, or skip and write them to FILE.rejected.jsonl."),
]
Quoting = Annotated[
    Literal["none", "double"] | None,
    _rare("--quoting", help="none: quotes are text; double: as in CSV."),
]
Separator = Annotated[
    str | None, _rare("--label-separator", help="Separator of several labels in one cell.")
]
Known = Annotated[Names, _rare("--labels", metavar="LABEL", help="The set of labels; repeatable.")]
NoLabel = Annotated[
    Names, _rare("--no-label", metavar="VALUE", help="Value that means unlabeled; repeatable.")
]
FirstChoice = Annotated[
    int | None,
    typer.Option(
        "--first-choice",
        min=0,
        max=1,
        help="Number of the first choice in the label column.",
        rich_help_panel=RARE_DATA,
    ),
]
Identity = Annotated[str | None, _rare("--id", metavar="COLUMN", help="Column with the row id.")]
Extra = Annotated[
    Names, _rare("--extra", metavar="COLUMN", help="Further column to read; repeatable.")
]
Group = Annotated[
    str | None,
    _rare("--group", metavar="COLUMN", help="Rows of one group are never split apart."),
]
Empty = Annotated[
    Literal["reject", "keep"] | None, _rare("--empty", help="What to do with empty texts.")
]
Scheme = Annotated[
    Literal["bio", "iob1", "bioes", "bilou", "bmes", "io", "plain"] | None,
    _rare("--scheme", help="Tagging scheme."),
]
WordPrefix = Annotated[
    str | None, _rare("--word-prefix", help="Prefix of every word to strip (WikiANN: en:).")
]
Joiner = Annotated[
    str | None, _rare("--joiner", help="CoNLL: string between two words of the text.")
]
SpanEnd = Annotated[
    Literal["exclusive", "inclusive"] | None,
    _rare("--span-end", help="Whether the end offset belongs to the span."),
]
Overlap = Annotated[
    Literal["longest", "reject"] | None, _rare("--overlap", help="What to do with nested spans.")
]
Language = Annotated[
    str | None, _rare("--language", help="Language: en, zh, ...; detected if unset.")
]

SPELLED = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " ", "nothing": ""}
COLUMNS = ("text", "label", "extra")
SINGLE = ("id", "group")
LISTS = ("labels", "no_label")
CHARACTERS = ("delimiter", "joiner", "label_separator")
LINES = "lines"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataOptions:
    """How rows are read; what is unset is detected and printed."""

    text: Text = None
    label: Label = None
    task: Task = None
    format: Form = None
    header: Header = None
    delimiter: Delimiter = None
    encoding: Encoding = None
    on_error: OnError = "stop"
    quoting: Quoting = None
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

    @property
    def by_lines(self) -> bool:
        """Whether each line is one text, whatever it contains."""
        return self.format == LINES

    def labeled(self) -> DataSpec:
        """The options that were given, for rows that must have labels."""
        if self.by_lines:
            raise ConfigError("--format lines reads texts without labels; only predict supports it")
        return self.spec()

    def spec(self) -> DataSpec:
        """The options that were given, as a data spec."""
        from bertsmith.config import validated
        from bertsmith.labeled.spec import DataSpec

        values = {one.name: getattr(self, one.name) for one in fields(self)}
        values.pop("on_error")
        if self.by_lines:
            values["format"] = None
        given = {name: _value(name, value) for name, value in values.items() if value is not None}
        if self.task is not None:
            from bertsmith.labeled.example import target_setting
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
