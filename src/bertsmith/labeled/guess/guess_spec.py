"""From a file to a spec: what it holds and how it is written, each guess with its reason."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from bertsmith.errors import InputFileError
from bertsmith.files.faults import BadRowError
from bertsmith.files.strict_json import parse_row
from bertsmith.labeled.formats.delimited import SWAG_COLUMNS
from bertsmith.labeled.formats.plain_lines import divided
from bertsmith.labeled.guess.columns import (
    TEXT_COLUMNS,
    called,
    guess_named,
    guess_numbered,
    plain_name,
    profile,
)
from bertsmith.labeled.guess.conll import ENDINGS as CONLL_ENDINGS
from bertsmith.labeled.guess.conll import guess_conll, looks_like_conll
from bertsmith.labeled.guess.json_rows import (
    document_format,
    guess_fields,
    row_format,
    sample_rows,
)
from bertsmith.labeled.guess.sample import ROWS, Sample, SpecBuilder, take_sample
from bertsmith.labeled.guess.table import DELIMITERS, NAME, TableReading, best_reading, guess_table
from bertsmith.labeled.guess.task import guess_task
from bertsmith.labeled.language import ENGLISH, guess_language
from bertsmith.labeled.read.reject import Reject, reject_of
from bertsmith.labeled.spec import OBJECTS, DataSpec

STRING = re.compile(r'"((?:[^"\\]|\\.)*)"(\s*:)?')  # with a colon after it, a key
TABLE_ENDINGS = (".csv", ".tsv")
JSON_ENDINGS = (".json", ".jsonl", ".ndjson")
ABOUT_TABLES = {"delimiter", "quoting", "header", "columns", "text", "label"}
EVEN = 0.9  # share of the rows that have the usual number of columns
QUESTIONS = {"squad": "answer", "c3": "choose"}
FASTTEXT = "__label__"
FEWEST_LINES = 4  # of plain lines: a text, or a label, a space and a text
FEW_WORDS = 4  # fewer of them in the name of a column
NEXT = 21  # lines that show whether the first one is a header
MOST_LABELS = 60  # different ones in the sample
NEARLY_ALL = 0.95
LEAST_TEXT = 4  # characters after the label, the mean


def guess_spec(path: Path, *, given: DataSpec | None = None, labeled: bool = True) -> DataSpec:
    """Decide all that `given` leaves open, from the first records of the file.

    Without `labeled`, only texts are wanted: files that do not end as tables or JSON do are read
    line by line, unless their content leaves no doubt, and labels are not read.
    """
    builder = SpecBuilder(given or DataSpec())
    sample = take_sample(path, builder.get("encoding"))
    why = "its byte order mark" if sample.marked else "the bytes are valid"
    builder.put("encoding", sample.encoding, why)
    if labeled and not sample.filled:
        what = "blank" if sample.lines else "empty"
        raise InputFileError(f"{path}, line 1, column 1: the file is {what}; give one with rows")
    if not labeled:
        builder.put("label", (), "not read, as only texts are wanted")
        builder.put("empty", "keep", "each row is one text")
    if not builder.is_set("format"):
        builder.put("format", *_format(sample, builder, labeled=labeled))
    texts = _fill(sample, builder)
    if language := guess_language(texts):
        builder.put("language", *language)
    return builder.spec()


def _format(sample: Sample, builder: SpecBuilder, *, labeled: bool) -> tuple[str, str]:
    if not labeled and not sample.filled:
        return "lines", "there is no record in it"
    if not labeled and not ABOUT_TABLES & builder.given and _is_plain(sample):
        return "lines", "one text per line, as in most files of this kind"
    first = sample.filled[0].lstrip()[:1] if sample.filled else ""
    if first in ("{", "["):
        if document := document_format(sample):
            return document
        # A table may begin with a bracket, too; JSON parses.
        if rows := sample_rows(sample):
            return row_format(rows)
        if first == "{":
            raise InputFileError(str(_first_fault(sample)))
    if first in ('"', "[") and sample.ending in JSON_ENDINGS:
        return "jsonl", f"its name ends in {sample.ending}"
    if why := looks_like_conll(sample):
        return "conll", why
    if ABOUT_TABLES & builder.given - {"delimiter"} or builder.get("delimiter") not in (None, " "):
        return "delimited", "rows are lines with delimiters"
    reading = best_reading(sample, builder)
    if not _is_table(reading) and (why := looks_labeled(sample.filled)):
        return "labeled-lines", why
    if reading.ragged and sample.ending not in TABLE_ENDINGS:
        return "lines", "no delimiter divides the lines evenly"
    return "delimited", "rows are lines with delimiters"


def _is_plain(sample: Sample) -> bool:
    """Whether a file of texts is to be read by lines: by its name, if its content is no table."""
    if sample.ending in (*TABLE_ENDINGS, *JSON_ENDINGS, *CONLL_ENDINGS):
        return False
    if not sample.filled:
        return True
    if sample.filled[0].startswith("{"):
        try:
            parse_row(sample.filled[0])
        except BadRowError:
            return '"data"' not in sample.filled[0]
        return False
    return not is_named_table(sample.filled) and looks_like_conll(sample) is None


def _is_table(reading: TableReading) -> bool:
    """Whether nearly all rows have the same columns, and one of them could hold labels."""
    if reading.share < EVEN or reading.delimiter == "\t":
        return reading.share >= EVEN
    columns = (
        [row[i] for row in reading.rows if len(row) == reading.width] for i in range(reading.width)
    )
    return any((one.category and one.short) or one.score for one in map(profile, columns))


def _first_fault(sample: Sample) -> Reject:
    """What is wrong with the first row of a file that has no good one at its beginning."""
    line = next(n for n, text in enumerate(sample.lines, start=1) if text.strip())
    try:
        parse_row(sample.lines[line - 1])
    except BadRowError as fault:
        return reject_of(fault, str(sample.path), line, "", part="field")
    return reject_of(BadRowError("no row is usable", "check the file"), str(sample.path), line, "")


def _fill(sample: Sample, builder: SpecBuilder) -> list[str]:
    """Decide what the format needs; gives texts of the sample."""
    form = builder.get("format")
    if form in QUESTIONS:
        builder.put("task", QUESTIONS[form], "questions with their answers")
        if form == "squad":
            builder.put("text", ("question", "context"), "as SQuAD was published")
            builder.put("group", "title", "questions of one article stay together")
        start = "\n".join(sample.lines[:500])[:100_000]
        return [_unescaped(text) for text, colon in STRING.findall(start) if not colon]
    if form == "lines":
        builder.put("text", (1,), "the whole line")
        builder.put("label", (), "lines of text have no labels")
        return list(sample.lines[:ROWS])
    if form == "labeled-lines":
        return guess_labeled_lines(sample, builder)
    if form in OBJECTS:
        return guess_fields(sample_rows(sample), builder)
    if form == "conll":
        return guess_conll(sample, builder)
    return _table(sample, builder)


def _unescaped(text: str) -> str:
    """The characters of a JSON string, which may be spelled as escapes."""
    try:
        return str(json.loads(f'"{text}"', strict=False))
    except ValueError:
        return text


def _table(sample: Sample, builder: SpecBuilder) -> list[str]:
    names, rows = guess_table(sample, builder)
    if names is not None and all(called(names, (column,)) for column in SWAG_COLUMNS):
        builder.put("format", "swag", "the columns of SWAG")
        builder.put("text", SWAG_COLUMNS, "the columns of SWAG")
        builder.put("task", "choose", "the columns of SWAG")
    width = len(names) if names is not None else builder.get("columns")
    cells = [[row[i] for row in rows if len(row) == width] for i in range(width)]
    if names is not None:
        times = Counter(names)
        keys = [name if times[name] == 1 else i + 1 for i, name in enumerate(names)]
        guess_named({key: profile(cells[i]) for i, key in enumerate(keys)}, builder)
    else:
        guess_numbered({i + 1: profile(cells[i]) for i in range(width)}, builder)
    label: tuple[str | int, ...] = builder.get("label") or ()
    at = _place(label[0], names) if len(label) == 1 else None
    if at is not None and at < width:
        if not any(cell.strip() for cell in cells[at]):
            builder.put("label", (), "the label column is empty: read as unlabeled")
        else:
            guess_task(cells[at], builder)
    elif len(label) > 1:
        builder.put("task", "multilabel", "several label columns")
    places = [_place(column, names) for column in builder.get("text") or ()]
    return [cell for at in places if at is not None and at < width for cell in cells[at]]


def _place(column: str | int, names: list[str] | None) -> int | None:
    if isinstance(column, int):
        return column - 1
    return names.index(column) if names and column in names else None


def is_named_table(lines: Sequence[str]) -> bool:
    """Whether the first line names columns, one of texts among them, and the others have them."""
    for delimiter in DELIMITERS:
        names = lines[0].split(delimiter)
        looks = all(NAME.fullmatch(name) and len(name.split()) < FEW_WORDS for name in names)
        if (
            len(names) < 2
            or not looks
            or not any(plain_name(name) in TEXT_COLUMNS for name in names)
        ):
            continue
        following = lines[1:NEXT]
        divided = sum(delimiter in line for line in following)
        if divided >= 0.9 * len(following):
            return True
    return False


def looks_labeled(lines: Sequence[str]) -> str | None:
    """Why each line seems to be a label, a space and a text; None if it does not."""
    lines = lines[:ROWS]
    if lines and sum(line.startswith(FASTTEXT) for line in lines) >= NEARLY_ALL * len(lines):
        return f"lines begin with {FASTTEXT}"
    parts = [line.partition(" ") for line in lines]
    parted = [(head, text.strip()) for head, _, text in parts if head and text.strip()]
    if len(lines) < FEWEST_LINES or len(parted) < NEARLY_ALL * len(lines):
        return None
    heads = profile([head for head, _ in parted])
    labels = set(heads.cells)
    few = 2 <= len(labels) <= min(MOST_LABELS, max(2, len(parted) // 4))
    written = all(any(map(str.isalnum, label)) and "\t" not in label for label in labels)
    words = sum(label.lower() in ENGLISH for label in labels)
    length = sum(len(text) for _, text in parted) / len(parted)
    if few and written and heads.short and 2 * words <= len(labels) and length >= LEAST_TEXT:
        return f"lines begin with one of {len(labels)} labels and a space"
    return None


def guess_labeled_lines(sample: Sample, builder: SpecBuilder) -> list[str]:
    """Decide the labels of such lines; gives texts of the sample."""
    lines = sample.filled[:ROWS]
    if lines[0].startswith(FASTTEXT):
        builder.put("label_prefix", FASTTEXT, "it stands before every label and is not part of it")
    builder.put("label", (1,), "what stands before the first space")
    builder.put("text", (2,), "what stands after it")
    prefix = builder.get("label_prefix")
    rows = [divided(line, prefix) for line in lines if not prefix or line.startswith(prefix)]
    if any(len(labels) > 1 for labels, _ in rows):
        builder.put("task", "multilabel", "a line holds several labels")
    if builder.get("label"):
        guess_task([label for labels, _ in rows for label in labels], builder)
    return [text for _, text in rows]
