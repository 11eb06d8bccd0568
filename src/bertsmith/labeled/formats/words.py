"""Sentences as words with tags: CoNLL, and JSON objects of two lists."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence

from bertsmith.errors import ConfigError
from bertsmith.files.faults import BadRowError, UnreadableLineError
from bertsmith.files.lines import Lines
from bertsmith.files.strict_json import type_name
from bertsmith.labeled.example import Example, Tagged
from bertsmith.labeled.formats.objects import (
    Build,
    Parts,
    Row,
    Units,
    plain,
    value_of,
)
from bertsmith.labeled.read.reject import Reject, RowAccount, reject_of
from bertsmith.labeled.read.tag_schemes import BadTagError, to_bio
from bertsmith.labeled.read.targets import unknown_label
from bertsmith.labeled.spec import DataSpec, column_of, extra_name
from bertsmith.wording import shown

Place = Callable[[int], tuple[int | str, int | None]]
"""From the number of a word to the column and the line of its tag."""


def joined(words: Sequence[str], joiner: str) -> tuple[str, Units]:
    """The text of words and the (start, end) of each."""
    units = []
    at = 0
    gap = len(joiner)
    for word in words:
        units.append((at, at + len(word)))
        at += len(word) + gap
    return joiner.join(words), tuple(units)


def tagged_words(units: Units, tags: Sequence[str], spec: DataSpec, place: Place) -> Tagged:
    """The target of a sentence; a fault names the word whose tag is wrong."""
    try:
        bio = to_bio(tags, spec.scheme or "bio")
    except BadTagError as fault:
        fault.column, fault.line = place(fault.index)
        raise
    if spec.labels is not None:
        for number, tag in enumerate(bio):
            kind = tag[2:] if tag[1:2] == "-" else tag
            if tag != "O" and kind not in spec.labels:
                column, line = place(number)
                raise unknown_label(kind, spec, column, line)
    return Tagged(units, bio)


def words_builder(source: str, spec: DataSpec, account: RowAccount) -> Build:
    """Builds the examples of a file of tokenized, tagged sentences."""
    words_field = str((spec.text or ("tokens",))[0])
    field = str(spec.label[0]) if spec.label else None

    def build(line: int, row: Row) -> Parts:
        words = _strings(row, words_field)
        for number, word in enumerate(words):
            if not word or word.isspace():
                raise BadRowError(
                    "the word is empty", "remove it and its tag", column=f"{words_field}[{number}]"
                )
        joiner = " " if spec.joiner is None else spec.joiner
        text, units = joined(words, joiner)
        target = None
        if field is not None:
            tags = _strings(row, field)
            if len(tags) != len(words):
                raise BadRowError(
                    f"{len(tags)} tags for {len(words)} words",
                    "write one tag for each word",
                    column=field,
                )
            target = tagged_words(units, tags, spec, lambda number: (f"{field}[{number}]", None))
        extra = {str(name): _cell(row, str(name)) for name in spec.extra or ()}
        return (text,), target, extra, units if target is None else ()

    return build


def _cell(row: Row, field: str) -> str:
    """A further value of a row; a list, which may have a tag per word, stays JSON."""
    value = row.get(field)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list) else plain(value)


def _strings(row: Row, field: str) -> list[str]:
    values = value_of(row, field)
    if not isinstance(values, list) or not values:
        what = "an empty list" if values == [] else type_name(values)
        raise BadRowError(
            f"it is {what}, not a list of strings", "write a list of strings", column=field
        )
    for number, value in enumerate(values):
        if type(value) is not str:
            raise BadRowError(
                f"{shown(value)} is {type_name(value)}, not a string",
                "write the tag's name: numbers mean nothing without their list of names",
                column=f"{field}[{number}]",
            )
    return values


DOCUMENT = "-DOCSTART-"
DOCUMENT_NUMBER = "document"  # its name among the further columns
COMMENT = re.compile(r"# ?(id|sent_id|text|newdoc|newpar|global)\b")
NAMED = re.compile(r"# ?(?:id|sent_id) ?=? ?(\S+)")
LONGEST_SENTENCE = 20_000  # words; without blank lines a whole file would be one sentence


def read_conll(
    lines: Lines, spec: DataSpec, account: RowAccount, *, piece: bool = False
) -> Iterator[Example | Reject]:
    """The sentences of a CoNLL file."""
    sentence = _Sentence(lines.name, spec)
    document = 0
    for line in lines:
        if isinstance(line, UnreadableLineError):
            sentence.spoil(lines.number, line)
        elif not line or line.isspace():
            if sentence:
                yield sentence.ended(document)
        elif line.startswith(DOCUMENT):
            if sentence:
                yield sentence.ended(document)
            document += 1
        elif line.startswith("#") and COMMENT.match(line):
            if match := NAMED.match(line):
                sentence.name = match[1]
        else:
            sentence.add(lines.number, line)
    if sentence:
        yield sentence.ended(document)


def cells_of(line: str, delimiter: str) -> list[str]:
    """The columns of a line; several spaces are one gap."""
    if delimiter != " ":
        return line.split(delimiter)
    return [cell for cell in line.split(" ") if cell]


def without_position(word: str, position: int) -> tuple[str, int] | None:
    """The character and its position in its word, where it ends in one; None where it does not.

    `position` is that of the character before, -1 at the beginning of a sentence.
    """
    for number in (position + 1, 0):
        ending = str(number)
        if word.endswith(ending) and len(word) > len(ending):
            return word.removesuffix(ending), number
    return None


class _Sentence:
    """The current sentence; its first fault is reported when it ends."""

    def __init__(self, source: str, spec: DataSpec) -> None:
        self._source = source
        self._spec = spec
        self._delimiter = spec.delimiter or "\t"
        self._width = spec.columns if isinstance(spec.columns, int) else 2
        self._word_at = _number(source, spec.text, 1, self._width) - 1
        labeled = spec.label != () and self._width > 1
        self._tag_at = None
        if labeled:
            self._tag_at = _number(source, spec.label, self._width, self._width) - 1
        self._further = _further(source, spec, self._width, (self._word_at, self._tag_at))
        self._prefix = spec.word_prefix or ""
        self._digits = spec.word_digits == "strip"
        self._joiner = " " if spec.joiner is None else spec.joiner
        self.name: str | None = None
        self._begin()

    def _begin(self) -> None:
        self._words: list[str] = []
        self._tags: list[str] = []
        self._cells: dict[int, list[str]] = {place: [] for place in self._further}
        self._lines: list[int] = []
        self._raw: list[str] = []
        self._first = 0
        self._fault: BadRowError | None = None
        self._position = -1  # of a character in its word

    def __bool__(self) -> bool:
        return bool(self._first)

    def add(self, number: int, line: str) -> None:
        """One line of the sentence."""
        self._first = self._first or number
        if len(self._raw) > LONGEST_SENTENCE:
            return
        self._raw.append(line)
        cells = cells_of(line, self._delimiter)
        if self._fault is None:
            self._fault = self._wrong(number, line, cells)
        if self._fault is None:
            self._words.append(self._bare(cells[self._word_at]))
            self._lines.append(number)
            if self._tag_at is not None:
                self._tags.append(cells[self._tag_at])
            for place, column in self._cells.items():
                column.append(cells[place])

    def _bare(self, word: str) -> str:
        bare = word[len(self._prefix) :]
        if not self._digits:
            return bare
        bare, self._position = without_position(bare, self._position) or (bare, -1)
        return bare

    def spoil(self, number: int, line: UnreadableLineError) -> None:
        """A line that could not be read."""
        self._first = self._first or number
        self._raw.append(line.raw)
        if self._fault is None:
            line.line = number
            self._fault = line

    def _wrong(self, number: int, line: str, cells: list[str]) -> BadRowError | None:
        if len(cells) != self._width:
            return self._ragged(number, line, len(cells))
        word = cells[self._word_at]
        if not word.startswith(self._prefix):
            return BadRowError(
                f"{shown(word)} does not begin with {shown(self._prefix)} as the words before",
                "add it, or set --word-prefix",
                column=self._word_at + 1,
                line=number,
            )
        if "\0" in line or not word[len(self._prefix) :].strip():
            what = "the line holds a NUL character" if "\0" in line else "the word is empty"
            return BadRowError(what, "write the word", column=self._word_at + 1, line=number)
        if self._digits and without_position(word[len(self._prefix) :], self._position) is None:
            return BadRowError(
                f"{shown(word)} does not end in its position in a word, as the others do",
                "add it, or set --word-digits keep",
                column=self._word_at + 1,
                line=number,
            )
        if len(self._raw) > LONGEST_SENTENCE:
            return BadRowError(
                f"the sentence has more than {LONGEST_SENTENCE:,} words",
                "put a blank line after each sentence",
                column=1,
                line=self._first,
            )
        return None

    def _ragged(self, number: int, line: str, count: int) -> BadRowError:
        other = " " if self._delimiter == "\t" else "\t"
        name = {"\t": "tab", " ": "space"}.get(self._delimiter, shown(self._delimiter))
        advice = f"write the word and its tag with a {name} between columns"
        if len(cells_of(line, other)) == self._width:
            advice = f"put a {name} between the columns, as in the other lines"
        return BadRowError(
            f"{count} column{'' if count == 1 else 's'}, but the other lines have {self._width}",
            advice,
            column=min(count, self._width) + 1 if count > self._width else max(count, 1),
            line=number,
        )

    def ended(self, document: int) -> Example | Reject:
        """The sentence as an example, or what is wrong with it; the next one begins."""
        try:
            if self._fault is not None:
                raise self._fault
            return self._example(document)
        except BadRowError as fault:
            return reject_of(fault, self._source, self._first, "\n".join(self._raw))
        finally:
            self.name = None
            self._begin()

    def _example(self, document: int) -> Example:
        text, units = joined(self._words, self._joiner)
        target = None
        if self._tag_at is not None:
            column, lines = self._tag_at + 1, self._lines
            target = tagged_words(units, self._tags, self._spec, lambda i: (column, lines[i]))
        return Example(
            source=self._source,
            line=self._first,
            id=self.name or str(self._first),
            texts=(text,),
            target=target,
            extra=self._extra(document),
            units=units if target is None else (),
        )

    def _extra(self, document: int) -> dict[str, str]:
        """Further columns as JSON lists with a cell per word, and the number of the document."""
        extra = {
            extra_name(place + 1): json.dumps(column, ensure_ascii=False)
            for place, column in self._cells.items()
        }
        return {**extra, DOCUMENT_NUMBER: str(document)} if document else extra


def _further(
    source: str, spec: DataSpec, width: int, taken: Sequence[int | None]
) -> tuple[int, ...]:
    """Places of the further columns, each once; words and tags are not further ones."""
    places = dict.fromkeys(
        _number(source, (column_of(str(column)),), 1, width) - 1
        for column in spec.extra or ()
        if column != DOCUMENT_NUMBER
    )
    for place in places:
        if place in taken:
            what = "words" if place == taken[0] else "tags that are learned"
            raise ConfigError(
                f"{source}: column {place + 1} has the {what}, so it cannot be read as a further "
                "column; name another one, or set --text and --label"
            )
    return tuple(places)


def _number(source: str, columns: tuple[str | int, ...] | None, usual: int, width: int) -> int:
    if not columns:
        return usual
    column = columns[0]
    if not isinstance(column, int) or column > width:
        raise ConfigError(
            f"{source}: there is no column {shown(column)}; the columns of this CoNLL file are "
            f"numbers from 1 to {width}"
        )
    return column
