"""Tags of words that a model reads next to its text, aligned by character offsets."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from bertsmith.config import Settings, validated
from bertsmith.errors import ConfigError, FolderError, TextError
from bertsmith.labeled.example import Example
from bertsmith.labeled.spec import extra_name
from bertsmith.tasks.enrichment.tag_channel import CHANNEL, ChannelShape
from bertsmith.tasks.feature import Feature
from bertsmith.text.encoding import Encoding, FieldEncoder, Ints, renumber
from bertsmith.wording import shown

KEY = "channel"
OUTSIDE = "O"
UNSEEN = 0  # the number of a tag that no training row has

Span = tuple[int, int, str]
Structures = Sequence[Sequence[Span]]
"""Tagged stretches of a text, for each structure: a predicate with its arguments, a tagger."""
Tagger = Callable[[Sequence[Example]], list[Structures]]
"""A model that tags the first texts of rows."""


class ChannelReading(Settings):
    """Where tags come from, and how many structures of a text are read."""

    column: str = ""  # or several, divided by commas: a structure each
    structures: Annotated[int, Field(gt=0)] = 3  # predicates of a text, the first ones
    width: Annotated[int, Field(gt=0)] = 10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Channel:
    """Numbers of the tags of the training rows, and where those of other rows come from."""

    reading: ChannelReading
    table: Mapping[str, int]
    structures: int
    model: Mapping[str, str] | None = None  # name and key of the model that tags
    tagger: Tagger | None = None

    key: ClassVar[str] = KEY

    @classmethod
    def of(
        cls,
        reading: ChannelReading,
        examples: Sequence[Example],
        *,
        model: Mapping[str, str] | None = None,
        tagger: Tagger | None = None,
    ) -> Channel:
        """From training rows."""
        every = rows_structures(examples, reading.column, tagger)
        names = sorted({name for one in every for part in one for _, _, name in part} | {OUTSIDE})
        if not any(every) and tagger is None:
            raise ConfigError(
                f"--channel {reading.column}: no training row has anything in that column, and "
                "there is no model folder of that name; name a column of tags, or the folder of a "
                "model that tags"
            )
        if len(names) < 2:
            raise ConfigError(
                f"--channel {reading.column}: no training row has a tag other than {OUTSIDE}; "
                "nothing can be learned from it"
            )
        most = max((len(one) for one in every), default=1)
        return cls(
            reading=reading,
            table={name: number for number, name in enumerate(names, start=1)},
            structures=max(1, min(reading.structures, most)),
            model=model,
            tagger=tagger,
        )

    @property
    def shape(self) -> ChannelShape:
        """The layers that a model needs for it."""
        return ChannelShape(
            tags=len(self.table) + 1, structures=self.structures, width=self.reading.width
        )

    @property
    def source(self) -> str:
        """The rows themselves, or a model that must be the trained one."""
        return ""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of tags; none where a model tags."""
        return channel_columns(self.reading.column) if self.tagger is None else ()

    def joined(
        self,
        features: Sequence[Feature],
        examples: Sequence[Example],
        tokenizer: FieldEncoder,
        max_length: int,
    ) -> tuple[list[Feature], dict[str, Any]]:
        """The features with word numbers and tags, and how many words have which."""
        every = rows_structures(examples, self.reading.column, self.tagger)
        counts: Counter[str] = Counter()
        unseen: Counter[str] = Counter()
        rows = [
            replace(
                feature,
                channels={
                    **feature.channels,
                    CHANNEL: self._numbers(feature.encoding, every[feature.example], unseen),
                },
            )
            for feature in features
        ]
        tagged = {
            one.example
            for one in rows
            if (one.channels[CHANNEL][:, 1:] != self.table[OUTSIDE]).any()
        }
        counts["structures_left_out"] = sum(max(0, len(s) - self.structures) for s in every)
        return rows, {
            "rows": len(examples),
            "rows_with_tags": len(tagged),
            "tags": len(self.table),
            "tags_never_seen": unseen.total(),
            "never_seen": [name for name, _ in unseen.most_common(5)],
            **counts,
        }

    def _numbers(self, encoding: Encoding, structures: Structures, unseen: Counter[str]) -> Ints:
        """(L, 1 + S): the word of each token, and its tags: those at the word's first character."""
        words = renumber(_own_words(encoding))
        numbers = np.full((len(words), 1 + self.structures), self.table[OUTSIDE], dtype=np.int32)
        numbers[:, 0] = words
        firsts = np.flatnonzero(np.diff(words, prepend=-1))
        heads = [row for row in firsts.tolist() if encoding.fields[row] == 0]
        for place, spans in enumerate(structures[: self.structures], start=1):
            for row, name in _tags_at(encoding, heads, spans):
                number = self.table.get(name, UNSEEN)
                if number == UNSEEN:
                    unseen[name] += 1
                numbers[words == words[row], place] = number
        return numbers

    def to_json(self) -> dict[str, Any]:
        """What bertsmith.json holds of it."""
        return {
            "reading": self.reading.model_dump(mode="json"),
            "tags": dict(self.table),
            "structures": self.structures,
            "model": None if self.model is None else dict(self.model),
        }

    def files(self) -> dict[str, Any]:
        """None."""
        return {}

    @classmethod
    def from_json(cls, section: Mapping[str, Any], place: str, tagger: Tagger | None) -> Channel:
        """From a model folder."""
        table, structures = section.get("tags"), section.get("structures")
        if (
            not isinstance(table, dict)
            or sorted(map(str, table.values())) != sorted(map(str, range(1, len(table) + 1)))
            or OUTSIDE not in table
            or type(structures) is not int
            or structures < 1
        ):
            raise FolderError(f"{place}: channel of the task in bertsmith.json is damaged")
        reading = validated(
            ChannelReading, section.get("reading", {}), f"{place}, channel of bertsmith.json"
        )
        return cls(
            reading=reading,
            table=table,
            structures=structures,
            model=section.get("model"),
            tagger=tagger,
        )


def rows_structures(
    examples: Sequence[Example], column: str, tagger: Tagger | None
) -> list[Structures]:
    """The tags of rows: by the tagger, or from their columns."""
    if tagger is not None:
        return tagger(examples)
    columns = channel_columns(column)
    return [
        [part for one in columns for part in structures_of(example, one)] for example in examples
    ]


def channel_columns(column: str) -> tuple[str, ...]:
    """The columns that `--channel` names."""
    return tuple(one.strip() for one in column.split(",") if one.strip())


def structures_of(example: Example, column: str) -> Structures:
    """The tags of a cell: JSON (`words` and `verbs`, `words` and `tags`, spans), or one per word.

    A cell that is no JSON has a tag for each word of the first text, divided by spaces; words are
    those of the file, if it divides the text, else those between spaces.
    """
    name = extra_name(column)
    if name not in example.extra:
        there = ", ".join(example.extra) or "none"
        raise ConfigError(
            f"{example.place}: there is no column {column!r} of tags, which the model reads next "
            f"to the text (--channel); further columns of this row: {there}. Give a file with that "
            "column, or train with another one (by its number if columns have no names) or with "
            "the folder of a model that tags"
        )
    cell = example.extra[name].strip()
    where = f"{example.place}, column {column}"
    if not cell:
        return ()
    if cell[0] not in "[{":
        return [_of_words(example, _words(example), cell.split(), where)]
    try:
        value = json.loads(cell)
    except ValueError as fault:
        raise TextError(f"{where}: {shown(cell)} is no JSON ({fault}); correct the cell") from fault
    return _of_json(example, value, where)


def _of_json(example: Example, value: Any, where: str) -> Structures:
    if isinstance(value, dict):
        words = _strings(value.get("words"), where, "words")
        units = _placed(example.texts[0], words, where)
        if "verbs" in value:
            verbs = value["verbs"]
            if not isinstance(verbs, list) or not all(isinstance(one, dict) for one in verbs):
                raise TextError(f"{where}: verbs must be a list of objects with tags")
            tags = [_strings(one.get("tags"), where, "tags") for one in verbs]
        else:
            tags = [_strings(value.get("tags"), where, "tags")]
        return [_of_words(example, units, one, where) for one in tags]
    if value and all(isinstance(one, str) for one in value):
        return [_of_words(example, _words(example), value, where)]
    return [[_span(example, one, where) for one in value]]


def _span(example: Example, value: Any, where: str) -> Span:
    keys = ("start", "end", "label")
    if not isinstance(value, dict) or not all(key in value for key in keys):
        raise TextError(f'{where}: a tag is {{"start": 0, "end": 4, "label": "NAME"}}')
    start, end, name = (value[key] for key in keys)
    size = len(example.texts[0])
    if type(start) is not int or type(end) is not int or not 0 <= start < end <= size:
        raise TextError(
            f"{where}: the tag {shown(str(name))} from {start} to {end} does not fit its text of "
            f"{size} characters; count characters of the text, from 0"
        )
    return start, end, str(name)


def _of_words(
    example: Example, units: Sequence[tuple[int, int]], tags: Sequence[str], where: str
) -> list[Span]:
    if len(tags) != len(units):
        raise TextError(
            f"{where}: {len(tags)} tags for {len(units)} words of {shown(example.texts[0])}; give "
            "one tag per word, or JSON with words and tags"
        )
    return [(start, end, name) for (start, end), name in zip(units, tags, strict=True)]


def _words(example: Example) -> Sequence[tuple[int, int]]:
    units = example.units or getattr(example.target, "units", ())
    if units:
        return tuple(units)
    return _placed(example.texts[0], example.texts[0].split(), example.place)


def _placed(text: str, words: Sequence[str], where: str) -> list[tuple[int, int]]:
    """Where words stand in a text, one after another."""
    places, at = [], 0
    for word in words:
        start = text.find(word, at)
        if start < 0:
            raise TextError(
                f"{where}: the word {shown(word)} of the tags is not in the text behind character "
                f"{at}: {shown(text)}; give tags of this text"
            )
        at = start + len(word)
        places.append((start, at))
    return places


def _strings(value: Any, where: str, name: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise TextError(f"{where}: {name} must be a list of strings")
    return value


def _own_words(encoding: Encoding) -> Ints:
    """Word numbers in which each special token is a word of its own."""
    special = encoding.words < 0
    words = encoding.words.astype(np.int64)
    words[special] = -1 - np.arange(int(special.sum()))
    return words.astype(np.int32)


def _tags_at(
    encoding: Encoding, heads: Sequence[int], spans: Sequence[Span]
) -> Iterator[tuple[int, str]]:
    """First rows of words with the tag of the span that holds their first character."""
    ordered = sorted(spans)
    starts = [start for start, _, _ in ordered]
    for row in heads:
        at = int(encoding.offsets[row, 0])
        place = int(np.searchsorted(starts, at, side="right")) - 1
        if place >= 0 and at < ordered[place][1]:
            yield row, ordered[place][2]
