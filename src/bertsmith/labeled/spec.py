"""The data spec: how a file of examples is read, what the user set, what was guessed and why."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from bertsmith.config import Settings
from bertsmith.labeled.example import TargetKind, target_kind
from bertsmith.wording import shown

Form = Literal[
    "delimited",
    "lines",
    "labeled-lines",
    "swag",
    "jsonl",
    "spans",
    "words",
    "cluener",
    "cluewsc",
    "answers",
    "conll",
    "squad",
    "c3",
]
Scheme = Literal["bio", "iob1", "bioes", "bilou", "bmes", "io", "plain"]
Column = str | Annotated[int, Field(ge=1)]

OBJECTS = ("jsonl", "spans", "words", "cluener", "cluewsc", "answers")
"""Formats whose rows are JSON objects."""
NAMED_CHARACTERS = {"\t": "tab", " ": "space", "": "nothing", ",": "comma", ";": "semicolon"}


def column_of(name: str) -> Column:
    """A column as people write it: a number counts columns, anything else is a name."""
    return int(name) if name.isdecimal() and int(name) > 0 else name


def extra_name(column: Column) -> str:
    """What `Example.extra` calls a column: a number is one of a file without names of columns."""
    column = column_of(column) if isinstance(column, str) else column
    return f"column {column}" if isinstance(column, int) else column


class DataSpec(Settings):
    """How to read one file; a setting that is None was not decided yet (or there is none).

    Columns are names of a header (or keys of an object), or numbers counted from 1.
    """

    format: Form | None = None
    task: str | None = None
    target: str | None = None
    """The kind of target in `TARGETS`; None: the one that `task` is trained on by default."""
    language: str | None = None
    encoding: str | None = None

    delimiter: Annotated[str, Field(min_length=1, max_length=1)] | None = None
    quoting: Literal["none", "double"] | None = None
    """Tables: "none" takes quotes as text; "double" is RFC 4180."""
    header: bool | None = None
    columns: tuple[str, ...] | int | None = None
    """Tables: the names of the header, or how many columns there are."""
    guarded: bool | None = None
    """Tables: an apostrophe before = + - @ was put there for spreadsheets and is not text."""

    text: tuple[Column, ...] | None = None
    label: tuple[Column, ...] | None = None
    """One column, or one of 0 and 1 for each label; () reads the file as unlabeled."""
    label_separator: Annotated[str, Field(min_length=1)] | None = None
    label_prefix: Annotated[str, Field(min_length=1)] | None = None
    """Labeled lines: what stands before every label, as __label__ does in fastText."""
    labels: tuple[str, ...] | None = None
    """The labels there are; a row with another one is rejected."""
    no_label: tuple[str, ...] | None = None
    """What stands for "not labeled" in the label column, as "-" does in SNLI."""
    first_choice: Literal[0, 1] | None = None
    """Multiple choice: the number of the first choice."""
    id: Column | None = None
    extra: tuple[Column, ...] | None = None
    group: Column | None = None
    """Rows of one group stay on one side of a split."""
    empty: Literal["reject", "keep"] | None = None
    """What happens to a row with an empty text."""

    scheme: Scheme | None = None
    word_prefix: str | None = None
    word_digits: Literal["strip", "keep"] | None = None
    """CoNLL: "strip" removes the position of a character in its word from its end (科0 技1)."""
    joiner: str | None = None
    """CoNLL: what stands between two words of the text."""
    span_end: Literal["exclusive", "inclusive"] | None = None
    overlap: Literal["longest", "reject"] | None = None
    """Spans inside others: the longest is taken, or the row is rejected."""

    rows: Annotated[int, Field(ge=1)] | None = None
    """Only the first so many records of the file are read; None reads all."""
    keys: tuple[str, ...] | None = None
    """JSON: the keys of the sampled rows, to name those that are not read."""

    why: Mapping[str, str] = Field(default_factory=dict)
    """For each setting that was guessed: the reason."""

    def stated(self, name: str) -> str | None:
        """A setting that the user gave; None if it is open or was guessed."""
        value: str | None = None if name in self.why else getattr(self, name)
        return value

    @property
    def target_kind(self) -> TargetKind | None:
        """What the label column holds; None: not decided yet."""
        return target_kind(self.target, self.task)

    @property
    def has_choices(self) -> bool:
        """Whether the texts of a row are a context and its choices."""
        kind = self.target_kind
        return kind is not None and kind.choices

    @property
    def given(self) -> set[str]:
        """The settings that have a value."""
        return {name for name in self.model_fields_set - {"why"} if getattr(self, name) is not None}

    @property
    def unread(self) -> tuple[Column, ...]:
        """The columns or keys that are there and are not read."""
        parts = (self.text, self.label, self.extra, (self.id,), (self.group,))
        read = {column for part in parts for column in part or ()}
        columns = self.columns if self.keys is None else self.keys
        if isinstance(columns, int):
            return tuple(number for number in range(1, columns + 1) if number not in read)
        return tuple(
            name or number
            for number, name in enumerate(columns or (), start=1)
            if name not in read and number not in read
        )

    def to_values(self) -> dict[str, Any]:
        """The settings as JSON values that `from_values` reads back."""
        return self.model_dump(mode="json", exclude_none=True, exclude={"keys", "rows"})

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> DataSpec:
        """Settings that `to_values` gave."""
        return cls.model_validate_json(json.dumps(values))

    def to_json(self) -> str:
        """The settings as one line of JSON."""
        return self.model_dump_json(exclude_none=True)

    def summary(self) -> str:
        """How the texts are read, in one line, and the options that change it."""
        if self.format == "lines":
            return "one text per line (change with --format, --text)"
        parts = [f"{self.format}"]
        if self.format == "delimited":
            name = NAMED_CHARACTERS.get(self.delimiter or "\t", shown(self.delimiter or ""))
            parts = [f"table by {name}", "header" if self.header else "no header"]
        if self.text:
            columns = ", ".join(
                f"column {one}" if isinstance(one, int) else shown(one) for one in self.text
            )
            parts.append(f"text {columns} ({self.why.get('text', 'as set')})")
        if self.unread:
            parts.append(f"not read: {_spelled('extra', self.unread)}")
        options = "--format, --text"
        if self.format == "delimited":
            options += ", --delimiter, --header/--no-header"
        return f"{'; '.join(parts)} (change with {options})"

    def describe(self) -> list[str]:
        """What was guessed and why, and what was set: lines to print."""
        lines = []
        for name in type(self).model_fields:
            value = getattr(self, name)
            if name in ("why", "keys") or (value is None and name not in self.why):
                continue
            lines.append(f"{name}: {_spelled(name, value)} ({self.why.get(name, 'as set')})")
        if self.unread:
            lines.append(f"not read: {_spelled('extra', self.unread)}")
        return lines


def _spelled(name: str, value: object) -> str:
    if value is None or value == ():
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        more = f" and {len(value) - 12} more" if len(value) > 12 else ""
        return ", ".join(_spelled(name, item) for item in value[:12]) + more
    if isinstance(value, str) and name in ("delimiter", "joiner", "label_separator"):
        return NAMED_CHARACTERS.get(value, shown(value))
    if isinstance(value, int) and name not in ("columns", "first_choice", "rows"):
        return f"column {value}"
    return str(value)
