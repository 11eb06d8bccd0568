"""How data files are read: options for labeled rows, and for files of texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from bertsmith.cli.shared.options import DATA, RARE_DATA, option
from bertsmith.errors import ConfigError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from bertsmith.files.streams import FileSource
    from bertsmith.labeled.spec import DataSpec
    from bertsmith.labeled.texts import Texts

Names = list[str] | None


Text = Annotated[
    Names,
    option(DATA, "--text", "Text column, by name or number from 1; repeatable.", metavar="COLUMN"),
]
Label = Annotated[
    Names, option(DATA, "--label", "Label column, by name or number; repeatable.", metavar="COLUMN")
]
Task = Annotated[
    str | None,
    option(
        DATA,
        "--task",
        "classify, multilabel, regress, tag, answer or choose; inferred from the labels if unset. "
        "write, similar, correct: pairs of texts.",
        metavar="TASK",
    ),
]
Form = Annotated[
    str | None,
    option(
        DATA,
        "--format",
        "delimited, jsonl, conll, squad, spans, words, cluener, cluewsc, answers, swag, c3; "
        "lines: one text per line; labeled-lines: a label, a space, a text. Detected if unset.",
        metavar="FORMAT",
    ),
]
Header = Annotated[
    bool | None, option(DATA, "--header/--no-header", "Whether the first row names the columns.")
]
Delimiter = Annotated[
    str | None, option(DATA, "--delimiter", "Column delimiter: tab, comma, or a character.")
]
Encoding = Annotated[
    str | None, option(DATA, "--encoding", "Encoding of the files; utf-8 if unset.")
]
OneText = Annotated[
    Names,
    option(DATA, "--text", "Column or key of the texts, by name or number.", metavar="COLUMN"),
]
FirstRows = Annotated[
    int | None,
    option(DATA, "--rows", "Read only the first N rows of each file.", metavar="N", min=1),
]
OnError = Annotated[
    Literal["stop", "skip"],
    option(
        DATA, "--on-error", "Invalid rows: stop, or skip and write them to FILE.rejected.jsonl."
    ),
]
Quoting = Annotated[
    Literal["none", "double"] | None,
    option(RARE_DATA, "--quoting", "none: quotes are text; double: as in CSV."),
]
Separator = Annotated[
    str | None, option(RARE_DATA, "--label-separator", "Separator of several labels in one cell.")
]
Known = Annotated[
    Names, option(RARE_DATA, "--labels", "The set of labels; repeatable.", metavar="LABEL")
]
NoLabel = Annotated[
    Names,
    option(RARE_DATA, "--no-label", "Value that means unlabeled; repeatable.", metavar="VALUE"),
]
FirstChoice = Annotated[
    int | None,
    option(
        RARE_DATA, "--first-choice", "Number of the first choice in the label column.", min=0, max=1
    ),
]
Identity = Annotated[
    str | None, option(RARE_DATA, "--id", "Column with the row id.", metavar="COLUMN")
]
Extra = Annotated[
    Names, option(RARE_DATA, "--extra", "Further column to read; repeatable.", metavar="COLUMN")
]
Group = Annotated[
    str | None,
    option(RARE_DATA, "--group", "Rows of one group are never split apart.", metavar="COLUMN"),
]
Empty = Annotated[
    Literal["reject", "keep"] | None, option(RARE_DATA, "--empty", "What to do with empty texts.")
]
Scheme = Annotated[
    Literal["bio", "iob1", "bioes", "bilou", "bmes", "io", "plain"] | None,
    option(RARE_DATA, "--scheme", "Tagging scheme."),
]
LabelPrefix = Annotated[
    str | None,
    option(RARE_DATA, "--label-prefix", "labeled-lines: prefix of every label (__label__)."),
]
WordDigits = Annotated[
    Literal["strip", "keep"] | None,
    option(RARE_DATA, "--word-digits", "CoNLL: position digits at the end of words (Weibo NER)."),
]
WordPrefix = Annotated[
    str | None, option(RARE_DATA, "--word-prefix", "Prefix of every word to strip (WikiANN: en:).")
]
Joiner = Annotated[
    str | None, option(RARE_DATA, "--joiner", "CoNLL: string between two words of the text.")
]
SpanEnd = Annotated[
    Literal["exclusive", "inclusive"] | None,
    option(RARE_DATA, "--span-end", "Whether the end offset belongs to the span."),
]
Overlap = Annotated[
    Literal["longest", "reject"] | None,
    option(RARE_DATA, "--overlap", "What to do with nested spans."),
]
Language = Annotated[
    str | None, option(RARE_DATA, "--language", "Language: en, zh, ...; detected if unset.")
]

SPELLED = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " ", "nothing": ""}
COLUMNS = ("text", "label", "extra")
SINGLE = ("id", "group")
LISTS = ("labels", "no_label")
CHARACTERS = ("delimiter", "joiner", "label_separator")
LINES = "lines"
FILE_ENDINGS = (
    *(".tsv", ".csv", ".txt", ".jsonl", ".ndjson", ".json", ".conll", ".bio"),
    *(".gz", ".zst"),
)


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
    label_prefix: LabelPrefix = None
    labels: Known = None
    no_label: NoLabel = None
    first_choice: FirstChoice = None
    id: Identity = None
    extra: Extra = None
    group: Group = None
    empty: Empty = None
    scheme: Scheme = None
    word_prefix: WordPrefix = None
    word_digits: WordDigits = None
    joiner: Joiner = None
    span_end: SpanEnd = None
    overlap: Overlap = None
    language: Language = None

    def labeled(self, rows: int | None = None) -> DataSpec:
        """The options that were given, for rows that must have labels."""
        if self.format == LINES:
            raise ConfigError("--format lines reads texts without labels; only predict supports it")
        return self.spec(rows)

    def spec(self, rows: int | None = None) -> DataSpec:
        """The options that were given, as a data spec; of the first `rows` if that is set."""
        given = given_settings(self)
        if self.task is not None:
            from bertsmith.labeled.example import PAIR_TASKS, target_setting
            from bertsmith.tasks.kinds import task_kind

            if self.task not in PAIR_TASKS:
                given |= target_setting(self.task, task_kind(self.task).target)
        return data_spec(given, rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextOptions:
    """How a file of texts is read; what is unset is detected and printed."""

    text: OneText = None
    format: Form = None
    header: Header = None
    delimiter: Delimiter = None
    encoding: Encoding = None
    on_error: OnError = "stop"
    quoting: Quoting = None

    def spec(self, rows: int | None = None) -> DataSpec:
        """The options that were given, as a data spec; of the first `rows` if that is set."""
        if len(self.text or ()) > 1:
            raise ConfigError(f"--text {' --text '.join(self.text or ())}: give one column")
        return data_spec(given_settings(self), rows)


def given_settings(options: DataclassInstance) -> dict[str, Any]:
    """The options that were given and say how rows are read, by their name in a data spec."""
    from bertsmith.labeled.spec import DataSpec

    values = {one.name: getattr(options, one.name) for one in fields(options)}
    return {
        name: _value(name, value)
        for name, value in values.items()
        if value is not None and name in DataSpec.model_fields
    }


def data_spec(given: Mapping[str, Any], rows: int | None = None) -> DataSpec:
    """These settings as a data spec; of the first `rows` if that is set."""
    from bertsmith.config import validated
    from bertsmith.labeled.spec import DataSpec

    some = {} if rows is None else {"rows": rows}
    return validated(DataSpec, {**given, **some}, "the options of the data")


@contextmanager
def open_texts(
    source: str, reading: TextOptions, *, rows: int | None = None, quiet: bool = False
) -> Iterator[Texts]:
    """The texts of a file, or of standard input for "-"; how they are read is printed."""
    from bertsmith.cli.shared.console import note
    from bertsmith.labeled.texts import read_texts, spooled_input

    spec = reading.spec(rows)
    with ExitStack() as stack:
        place: FileSource = "-" if source == "-" else Path(source)
        if source == "-" and (spec.format or spec.given & {"text", "header", "delimiter"}):
            place = stack.enter_context(spooled_input())
        texts = read_texts(place, spec, on_error=reading.on_error)
        name = "standard input" if source == "-" else source
        note(f"{name}: {texts.spec.summary()}", quiet=quiet)
        yield texts
    if texts.account.rejected and source != "-" and texts.spec.format not in ("lines", "jsonl"):
        note(f"rejected rows are in {source}.rejected.jsonl", quiet=quiet)


def texts_or_text(given: str, reading: TextOptions) -> Iterator[str]:
    """The texts of a file or of standard input, or the text itself if it names no file."""
    if given == "-" or is_data_file(given):
        with open_texts(given, reading) as texts:
            yield from texts
    else:
        yield given


def is_data_file(given: str) -> bool:
    """Whether this names a file; the name of a missing file is refused and not read as a text."""
    from bertsmith.errors import InputFileError

    try:
        path = Path(given)
        if path.is_dir():
            raise InputFileError(f"{path} is a folder; give a file, or a text")
        if path.exists():
            return True
    except (OSError, ValueError):  # too long, or with a null character: no name of a file
        return False
    if given.lower().endswith(FILE_ENDINGS) and " " not in given:
        raise InputFileError(f"{given}: there is no such file")
    return False


def _value(name: str, value: Any) -> Any:
    from bertsmith.labeled.spec import column_of

    if name in COLUMNS:
        return tuple(column_of(one) for one in value)
    if name in SINGLE:
        return column_of(value)
    if name in LISTS:
        return tuple(value)
    return SPELLED.get(value, value) if name in CHARACTERS else value
