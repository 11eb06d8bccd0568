"""How data files are read: options for labeled rows, and for files of texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from bertsmith.errors import ConfigError
from bertsmith.setting import DATA, Setting

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from bertsmith.files.streams import FileSource
    from bertsmith.labeled.spec import DataSpec
    from bertsmith.labeled.texts import Texts

Names = list[str] | None


Text = Annotated[
    Names,
    Setting("Text column or key, by name or number from 1; repeatable.", DATA, metavar="COLUMN"),
]
Label = Annotated[
    Names, Setting("Label column, by name or number; repeatable.", DATA, metavar="COLUMN")
]
Task = Annotated[
    str | None,
    Setting(
        "classify, multilabel, regress, tag, answer or choose; inferred from the labels if unset. "
        "write, similar, correct: pairs of texts.",
        DATA,
        metavar="TASK",
    ),
]
Form = Annotated[
    str | None,
    Setting(
        "File format: delimited, jsonl, conll, squad, spans, words, cluener, cluewsc, answers, "
        "swag, c3; lines: one text per line; labeled-lines: a label, a space, a text. Detected if "
        "unset.",
        DATA,
        metavar="FORMAT",
    ),
]
Header = Annotated[bool | None, Setting("Whether the first row names the columns.", DATA)]
Delimiter = Annotated[str | None, Setting("Column delimiter: tab, comma, or a character.", DATA)]
Encoding = Annotated[str | None, Setting("Encoding of the files; utf-8 if unset.", DATA)]
OneText = Annotated[
    Names,
    Setting("Text column or key, by name or number from 1.", DATA, metavar="COLUMN"),
]
FirstRows = Annotated[
    int | None,
    Setting("Read only the first N rows of each file.", DATA, metavar="N", min=1),
]
MaxWords = Annotated[
    int | None, Setting("Maximum number of words: the most frequent.", DATA, min=1)
]
OnError = Annotated[
    Literal["stop", "skip"],
    Setting("Invalid rows: stop, or skip and write them to FILE.rejected.jsonl.", DATA),
]
Quoting = Annotated[
    Literal["none", "double"] | None,
    Setting("none: quotes are text; double: as in CSV.", DATA, rare=True),
]
Separator = Annotated[
    str | None, Setting("Separator of several labels in one cell.", DATA, rare=True)
]
Known = Annotated[
    Names, Setting("The set of labels; repeatable.", DATA, metavar="LABEL", rare=True)
]
NoLabel = Annotated[
    Names,
    Setting("Value that means unlabeled; repeatable.", DATA, metavar="VALUE", rare=True),
]
FirstChoice = Annotated[
    int | None,
    Setting("Number of the first choice in the label column.", DATA, min=0, max=1, rare=True),
]
Identity = Annotated[
    str | None, Setting("Column with the row id.", DATA, metavar="COLUMN", rare=True)
]
Extra = Annotated[
    Names, Setting("Further column to read; repeatable.", DATA, metavar="COLUMN", rare=True)
]
Group = Annotated[
    str | None,
    Setting("Rows of one group are never split apart.", DATA, metavar="COLUMN", rare=True),
]
Empty = Annotated[
    Literal["reject", "keep"] | None, Setting("What to do with empty texts.", DATA, rare=True)
]
Scheme = Annotated[
    Literal["bio", "iob1", "bioes", "bilou", "bmes", "io", "plain"] | None,
    Setting("Tagging scheme.", DATA, rare=True),
]
LabelPrefix = Annotated[
    str | None,
    Setting("labeled-lines: prefix of every label (__label__).", DATA, rare=True),
]
WordDigits = Annotated[
    Literal["strip", "keep"] | None,
    Setting("CoNLL: position digits at the end of words (Weibo NER).", DATA, rare=True),
]
WordPrefix = Annotated[
    str | None, Setting("Prefix of every word to strip (WikiANN: en:).", DATA, rare=True)
]
Joiner = Annotated[
    str | None, Setting("CoNLL: string between two words of the text.", DATA, rare=True)
]
SpanEnd = Annotated[
    Literal["exclusive", "inclusive"] | None,
    Setting("Whether the end offset belongs to the span.", DATA, rare=True),
]
Overlap = Annotated[
    Literal["longest", "reject"] | None,
    Setting("What to do with nested spans.", DATA, rare=True),
]
Language = Annotated[
    str | None, Setting("Language: en, zh, ...; detected if unset.", DATA, rare=True)
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
