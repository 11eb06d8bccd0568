"""Guesses about JSON: which kind of rows a file holds, and under which keys."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from bertsmith.errors import InputFileError
from bertsmith.files.strict_json import AS_WRITTEN, JsonDocument
from bertsmith.labeled.formats.objects import plain
from bertsmith.labeled.formats.spans import ENDS, KINDS, PIECES, STARTS
from bertsmith.labeled.guess import columns as usual
from bertsmith.labeled.guess.columns import called, guess_named, profile
from bertsmith.labeled.guess.sample import ROWS, Sample, SpecBuilder
from bertsmith.labeled.guess.task import guess_task
from bertsmith.labeled.read.tag_schemes import guess_scheme
from bertsmith.text.segment import is_chinese

ARTICLES = re.compile(r'"(paragraphs|context_text)"\s*:')
NESTED_LISTS = re.compile(r"\[\s*\[\s*\[")
MOST_KEYS = 100  # that are named as not read
Rows = Sequence[Mapping[str, object]]


def document_format(sample: Sample) -> tuple[str, str] | None:
    """The format of a file that is one JSON document, and why; None for rows of objects."""
    start = "\n".join(sample.lines[:500]).lstrip()[:200_000]
    if NESTED_LISTS.match(start):
        return "c3", "lists of sentences, questions and an id"
    if ARTICLES.search(start) and (start[:1] == "[" or '"data"' in start):
        return "squad", "articles with paragraphs and questions"
    return None


def sample_rows(sample: Sample) -> Rows:
    """The objects at the beginning of a file; broken ones are left to the reader."""
    if sample.filled[0].lstrip().startswith("["):
        return _listed(sample)
    rows: list[Mapping[str, object]] = []
    for line in sample.filled:
        try:
            row = AS_WRITTEN.decode(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict):
            rows.append(row)
        if len(rows) >= ROWS:
            break
    return rows


def _listed(sample: Sample) -> Rows:
    rows: list[Mapping[str, object]] = []
    try:
        document = JsonDocument("\n".join(sample.lines), str(sample.path))
        for _, _, value in document.elements():
            if isinstance(value, dict):
                rows.append(value)
            if len(rows) >= ROWS:
                break
    except InputFileError:
        if sample.whole:
            raise
    return rows


def row_format(rows: Rows) -> tuple[str, str]:
    """What the objects are, and why."""
    keys = _keys(rows)
    if _any(rows, ("label",), lambda value: isinstance(value, dict)):
        return "cluener", "labels are objects of kinds and words"
    if _any(rows, ("target",), lambda value: isinstance(value, dict) and "span1_text" in value):
        return "cluewsc", "two spans are compared"
    if called(keys, ("question",)) and called(keys, ("context",)) and "answers" in keys:
        return "answers", "rows have a question, a context and answers"
    if _any(rows, usual.WORDS, _strings) and _any(rows, usual.TAGS, _strings):
        return "words", "rows are lists of words and tags"
    if _any(rows, usual.SPANS, _span_list):
        return "spans", "rows have a list of spans"
    return "jsonl", "rows are JSON objects"


def _keys(rows: Rows) -> list[str]:
    """The keys of all rows, in the order they occur."""
    return list(dict.fromkeys(key for row in rows for key in row))


def _any(rows: Rows, keys: Sequence[str], fits: Callable[[object], bool]) -> bool:
    return any(key in row and fits(row[key]) for row in rows for key in keys)


def _strings(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(type(item) is str for item in value)


def _span_list(value: object) -> bool:
    if not isinstance(value, list) or not value:
        return False
    first = value[0]
    if isinstance(first, dict):
        return any(key in first for key in STARTS) and any(key in first for key in ENDS)
    return isinstance(first, list) and len(first) == 3 and type(first[0]) is int


def guess_fields(rows: Rows, builder: SpecBuilder) -> list[str]:
    """Decide the keys of a format's rows; gives texts of the sample."""
    form = builder.get("format")
    builder.put("keys", tuple(_keys(rows)[:MOST_KEYS]), "")
    if form == "jsonl":
        _columns(rows, builder)
    else:
        TASKS[form](rows, builder)
        if name := called(_keys(rows), usual.IDS):
            builder.put("id", name, f"a key is called {name!r}")
    fields = [str(field) for field in builder.get("text") or ()]
    return [plain(row.get(field)) for row in rows for field in fields]


def _columns(rows: Rows, builder: SpecBuilder) -> None:
    keys = _keys(rows)
    choices = called(keys, usual.CHOICES)
    if choices and _any(rows, (choices,), _strings):
        before = [
            next((key for key in keys if usual.plain_name(key) in names), None)
            for names in (("context", "passage", "article"), ("question", "query", "premise"))
        ]
        builder.put("text", (*filter(None, before), choices), "a list of choices")
        builder.put("task", "choose", "rows have a list of choices")
        answer = called(keys, usual.ANSWERS)
        builder.put("label", (answer,) if answer else (), "a key is usually called so")
    profiles = {
        key: profile([plain(row.get(key)) for row in rows])
        for key in keys
        if sum(isinstance(row.get(key), dict) for row in rows) * 2 <= len(rows)
    }
    guess_named(profiles, builder)
    label = builder.get("label")
    if label and len(label) == 1:
        values = [row.get(str(label[0])) for row in rows]
        if any(isinstance(value, list) for value in values):
            builder.put("task", "multilabel", "labels are lists")
        parts = (value if isinstance(value, list) else [value] for value in values)
        guess_task([plain(item) for part in parts for item in part], builder)


def _text_key(rows: Rows, builder: SpecBuilder, names: Sequence[str]) -> None:
    name = called(_keys(rows), names) or names[0]
    builder.put("text", (name,), "a key is usually called so")


def _spans(rows: Rows, builder: SpecBuilder) -> None:
    _text_key(rows, builder, usual.TEXTS)
    field = next((key for key in usual.SPANS if _any(rows, (key,), _span_list)), "entities")
    builder.put("label", (field,), "it holds lists of spans")
    builder.put("task", "tag", "spans of the text are marked")
    label, text = str(builder.get("label")[0]), str(builder.get("text")[0])
    inclusive = exclusive = 0
    for row in rows:
        values = row.get(label)
        for value in values if isinstance(values, list) else []:
            start, end, piece = _bounds(value)
            if piece is not None:
                body = plain(row.get(text))
                exclusive += body[start:end] == piece
                inclusive += body[start : end + 1] == piece
            else:
                inclusive += start == end
    if inclusive > exclusive:
        builder.put("span_end", "inclusive", "ends are those of the last character")
    else:
        builder.put("span_end", "exclusive", "ends are those of the first character after the span")


def _bounds(value: object) -> tuple[int, int, str | None]:
    bounds: list[object] = [None, None]
    piece = None
    if isinstance(value, dict):
        bounds = [next((value[n] for n in names if n in value), None) for names in (STARTS, ENDS)]
        piece = next((v for n in PIECES if type(v := value.get(n)) is str and n not in KINDS), None)
    elif isinstance(value, list) and len(value) == 3:
        bounds = value[:2]
    start, end = bounds
    return (start, end, piece) if type(start) is int and type(end) is int else (0, 1, None)


def _cluener(rows: Rows, builder: SpecBuilder) -> None:
    _text_key(rows, builder, ("text",))
    builder.put("label", ("label",), "kinds, words and their places")
    builder.put("task", "tag", "words of the text are marked")
    builder.put("span_end", "inclusive", "as CLUENER was published")


def _cluewsc(rows: Rows, builder: SpecBuilder) -> None:
    builder.put("text", ("text",), "as CLUEWSC was published")
    labeled = any("label" in row for row in rows)
    builder.put("label", ("label",) if labeled else (), "as CLUEWSC was published")
    builder.put("task", "classify", "the pronoun means the noun, or not")


def _answers(rows: Rows, builder: SpecBuilder) -> None:
    builder.put("text", ("question", "context"), "as flattened SQuAD")
    builder.put("label", ("answers",), "as flattened SQuAD")
    builder.put("task", "answer", "rows have answers")


def _words(rows: Rows, builder: SpecBuilder) -> None:
    _text_key(rows, builder, usual.WORDS)
    field = next((key for key in usual.TAGS if _any(rows, (key,), _strings)), "tags")
    builder.put("label", (field,), "it holds a tag for each word")
    builder.put("task", "tag", "words are tagged")
    words = str(builder.get("text")[0])
    for label in builder.get("label"):  # one, or none: the rows have no tags
        tags = [v for row in rows if _strings(v := row.get(str(label))) and isinstance(v, list)]
        builder.put("scheme", *guess_scheme(tags))
    lists = [value for row in rows if isinstance(value := row.get(words), list)]
    put_joiner([plain(word) for one in lists for word in one], builder)


def put_joiner(words: Sequence[str], builder: SpecBuilder) -> None:
    """Decide what stands between words: nothing in Chinese, a space elsewhere."""
    chinese = sum(any(map(is_chinese, word)) for word in words)
    if chinese * 2 > len(words):
        builder.put("joiner", "", "most words are Chinese")
    else:
        builder.put("joiner", " ", "words are written apart")


TASKS: Mapping[str, Callable[[Rows, SpecBuilder], None]] = {
    "spans": _spans,
    "cluener": _cluener,
    "cluewsc": _cluewsc,
    "answers": _answers,
    "words": _words,
}
