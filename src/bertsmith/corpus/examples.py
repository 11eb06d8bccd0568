"""Examples for pre-training from a corpus: pure functions of a seed, an epoch and their numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from bertsmith.config import Settings
from bertsmith.corpus.plans import (
    PairTask,
    Plan,
    doc_sentences,
    full_sentences,
    segment_pairs,
    sentence_pairs,
)
from bertsmith.corpus.rows import Longs, RowsBatch, spread
from bertsmith.corpus.shards import Corpus
from bertsmith.corpus.view import CorpusView
from bertsmith.errors import ConfigError
from bertsmith.random_keys import Words, hashes, key_of
from bertsmith.text.special_tokens import Frame, Marks
from bertsmith.text.tokenizer import Tokenizer


class Assembly:
    """Writes `[CLS] A [SEP] B [SEP]`, or `[CLS] A [SEP] more [SEP]`, as the tokenizer would."""

    def __init__(self, files: Corpus, *, paired: bool) -> None:
        self._files = files
        tokenizer = files.tokenizer()
        frame = frame_of(tokenizer, 2 if paired else 1)
        self._before, self._after = frame.gaps[0], frame.gaps[-1]
        self._segments = frame.segments
        if paired:
            self._between: Marks = frame.gaps[1]
        else:
            sep = tokenizer.special.sep
            self._between = () if sep is None else ((sep, frame.segments[0]),)
            self._segments = (frame.segments[0], frame.segments[0])
        self.specials = frame.specials

    def lengths(self, plan: Plan, numbers: Longs) -> Longs:
        """(B,) rows of each example."""
        counts = plan.first[numbers + 1] - plan.first[numbers]
        around = len(self._before) + len(self._after)
        lengths: Longs = plan.tokens(numbers) + around + (counts - 1) * len(self._between)
        return lengths

    def rows(self, plan: Plan, numbers: Longs, keys: Words) -> RowsBatch:
        """The examples of a plan, gathered from the corpus in one go."""
        parts, counts = plan.parts(numbers)
        ends = np.cumsum(counts)
        first = np.zeros(len(parts), dtype=bool)
        last = np.zeros(len(parts), dtype=bool)
        first[ends - counts] = True
        last[ends - 1] = True
        sizes = plan.stops[parts] - plan.starts[parts]
        before = np.where(first, len(self._before), len(self._between))
        blocks = before + sizes + last * len(self._after)
        stops = np.cumsum(blocks)
        begin = stops - blocks  # the first row of each part and its special tokens
        rows = int(stops[-1]) if len(stops) else 0
        here = spread(begin + before, sizes)
        there = spread(plan.starts[parts], sizes)
        ids = np.zeros(rows, dtype=np.int32)
        ids[here] = self._files.tokens[there]
        segments = np.zeros(rows, dtype=np.int32)
        if any(self._segments):
            segments[here] = np.repeat(np.where(first, *self._segments), sizes)
        origins = np.full(rows, -1, dtype=np.int64)
        origins[here] = there
        for at, marks in (
            (begin[first], self._before),
            (begin[~first], self._between),
            (stops[last] - len(self._after), self._after),
        ):
            for place, (mark, segment) in enumerate(marks):
                ids[at + place], segments[at + place] = mark, segment
        return RowsBatch(
            ids=ids,
            segments=segments,
            words=self._words(rows, here, there, sizes),
            lengths=tuple(np.add.reduceat(blocks, ends - counts).tolist()) if rows else (),
            keys=keys,
            pair_labels=None if plan.labels is None else plan.labels[numbers],
            sentences=self._sentences(rows, begin + before, plan.starts[parts], sizes),
            origins=origins,
        )

    def _words(self, rows: int, here: Longs, there: Longs, sizes: Longs) -> NDArray[np.int32]:
        """Word numbers, a new one at the start of every part, -1 at special tokens."""
        starts = self._files.starts_word[there] != 0
        starts[np.cumsum(sizes)[sizes > 0] - sizes[sizes > 0]] = True
        words = np.full(rows, -1, dtype=np.int32)
        words[here] = np.cumsum(starts, dtype=np.int32) - np.int32(1)
        return words

    def _sentences(self, rows: int, here: Longs, there: Longs, sizes: Longs) -> Longs:
        """Sentence numbers, a new one at the start of every part; `here` is its first row."""
        borders = self._files.sentences
        low = np.searchsorted(borders, there, side="right")
        counts = np.searchsorted(borders, there + sizes, side="left") - low
        marks = np.zeros(rows, dtype=np.int64)
        marks[here[sizes > 0]] = 1
        inside = borders[spread(low, counts)] + np.repeat(here - there, counts)
        marks[inside] = 1
        return np.cumsum(marks)


def frame_of(tokenizer: Tokenizer, fields: int) -> Frame:
    """The special tokens a tokenizer puts around so many fields."""
    encoding = tokenizer.encode_fields(["a"] * fields)
    gaps: list[list[tuple[int, int]]] = [[]]
    segments: list[int] = []
    seen = -1
    rows = zip(
        encoding.fields.tolist(), encoding.ids.tolist(), encoding.segments.tolist(), strict=True
    )
    for field, number, segment in rows:
        if field < 0:
            gaps[-1].append((number, segment))
        elif field > seen:
            seen = field
            segments.append(segment)
            gaps.append([])
    if len(segments) != fields:
        raise ConfigError("the tokenizer makes nothing of the letter a, so texts cannot be framed")
    return Frame(tuple(tuple(gap) for gap in gaps), tuple(segments))


InputKind = Literal["segment_pair", "sentence_pair", "full_sentences", "doc_sentences"]
Planner = Callable[[CorpusView, int, float, PairTask | None, int], Plan]

PLANNERS: dict[InputKind, Planner] = {
    "segment_pair": segment_pairs,
    "sentence_pair": lambda view, room, short, task, key: sentence_pairs(view, room, task, key),
    "full_sentences": lambda view, room, short, task, key: full_sentences(view, room, short, key),
    "doc_sentences": lambda view, room, short, task, key: doc_sentences(view, room, short, key),
}
PAIRED: tuple[InputKind, ...] = ("segment_pair", "sentence_pair")


class InputSettings(Settings):
    """The shape of an example; `short` is the share of examples of a random shorter length."""

    kind: InputKind = "segment_pair"
    max_length: int = Field(default=128, ge=8)
    short: float = Field(default=0.1, ge=0.0, le=1.0)
    pair: PairTask | None = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.pair is not None and self.kind not in PAIRED:
            raise ValueError(
                f"{self.kind} has no pairs, so it cannot ask {self.pair}: take segment_pair or "
                "sentence_pair, or leave `pair` out"
            )
        if self.kind == "sentence_pair" and self.short:
            raise ValueError("sentence_pair takes single sentences as they are: set `short` to 0")
        return self


class ExampleSource(Protocol):
    """Examples by number, the same for the same epoch and number."""

    def count(self, epoch: int) -> int:
        """How many examples an epoch has."""

    def lengths(self, epoch: int, numbers: NDArray[np.integer]) -> Longs:
        """(B,) the length of each example in rows, special tokens included."""

    def examples(self, epoch: int, numbers: NDArray[np.integer]) -> RowsBatch:
        """The examples of these numbers, 0 to count - 1, one after another."""


class ChangedExamples:
    """Examples of another source, changed without moving a row."""

    def __init__(self, source: ExampleSource, change: Callable[[RowsBatch], RowsBatch]) -> None:
        self._source = source
        self._change = change

    def count(self, epoch: int) -> int:
        """How many examples an epoch has."""
        return self._source.count(epoch)

    def lengths(self, epoch: int, numbers: NDArray[np.integer]) -> Longs:
        """(B,) the length of each example in rows, special tokens included."""
        return self._source.lengths(epoch, numbers)

    def examples(self, epoch: int, numbers: NDArray[np.integer]) -> RowsBatch:
        """The examples of these numbers, changed."""
        return self._change(self._source.examples(epoch, numbers))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenDocuments:
    """What examples are made from: documents of a corpus, those trained on or those held out.

    `held_out` is the share that is held out of whatever else examples are made from.
    """

    corpus: Corpus
    documents: NDArray[np.integer]
    inputs: InputSettings
    seed: int
    held_out: float = 0.0
    training: bool = True


class PlannedExamples:
    """The examples of some documents of a corpus, as a planner arranges them.

    `planner` makes the plan of an epoch from the documents, the room for tokens and a key; `empty`
    is the error where it makes none. Only the plan of the latest epoch is cached; counts are cached
    for all.
    """

    def __init__(
        self,
        corpus: Corpus,
        documents: NDArray[np.integer],
        planner: Callable[[CorpusView, int, int], Plan],
        *,
        paired: bool,
        max_length: int,
        empty: str,
        seed: int = 0,
    ) -> None:
        self._planner = planner
        self._empty = empty
        self._seed = seed
        self._view = CorpusView(corpus, documents)
        self._assembly = Assembly(corpus, paired=paired)
        self._longest = max_length
        self._room = max_length - self._assembly.specials
        self._plan: tuple[int, Plan] | None = None
        self._counts: dict[int, int] = {}

    @property
    def tokens(self) -> int:
        """Tokens of the documents, special ones not counted."""
        return self._view.tokens

    def count(self, epoch: int) -> int:
        """How many examples an epoch has."""
        if epoch not in self._counts:
            self._counts[epoch] = self.plan(epoch).count
        return self._counts[epoch]

    def lengths(self, epoch: int, numbers: NDArray[np.integer]) -> Longs:
        """(B,) the length of each example in rows, special tokens included."""
        return self._assembly.lengths(self.plan(epoch), self._checked(epoch, numbers))

    def examples(self, epoch: int, numbers: NDArray[np.integer]) -> RowsBatch:
        """The examples of these numbers, 0 to count - 1, one after another."""
        numbers = self._checked(epoch, numbers)
        keys = hashes(key_of(self._seed, "example", epoch), numbers)
        rows = self._assembly.rows(self.plan(epoch), numbers, keys)
        return replace(rows, longest=self._longest)

    def plan(self, epoch: int) -> Plan:
        """The plan of an epoch, made on first use."""
        if self._plan is None or self._plan[0] != epoch:
            key = key_of(self._seed, "plan", epoch)
            plan = self._planner(self._view, self._room, key)
            if not plan.count:
                raise ConfigError(self._empty)
            self._plan = (epoch, plan)
            self._counts[epoch] = plan.count
        return self._plan[1]

    def _checked(self, epoch: int, numbers: NDArray[np.integer]) -> Longs:
        checked = np.asarray(numbers, dtype=np.int64)
        count = self.count(epoch)
        if len(checked) and not 0 <= checked.min() <= checked.max() < count:
            raise ConfigError(
                f"epoch {epoch} has the examples 0 to {count - 1}, not "
                f"{checked.min()} to {checked.max()}"
            )
        return checked


class CorpusExamples(PlannedExamples):
    """The examples of some documents of a corpus, of the kind that the settings name."""

    def __init__(
        self,
        corpus: Corpus,
        documents: NDArray[np.integer],
        settings: InputSettings,
        *,
        seed: int = 0,
    ) -> None:
        self.kind = settings.kind
        self.pair = settings.pair
        planner = PLANNERS[self.kind]
        super().__init__(
            corpus,
            documents,
            lambda view, room, key: planner(view, room, settings.short, settings.pair, key),
            paired=self.kind in PAIRED,
            max_length=settings.max_length,
            empty=f"these documents give no example of the kind {self.kind}: each has fewer "
            "than two sentences; take full_sentences",
            seed=seed,
        )
