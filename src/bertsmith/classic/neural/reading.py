"""Lines of words as batches of sequences: whole lines or documents, or lanes that never end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertsmith.nn.packing import pack
from bertsmith.training.loop.epochs import Epochs

Ids = NDArray[np.int32]
Numbers = NDArray[np.int64]
Reset = Literal["line", "document", "none"]
LINE_END = 0  # also what stands before the first word; word w of a stream is w + 1


class IndexedWords(Protocol):
    """What is read of a stream of words: ids of all lines, places of lines, words with counts."""

    @property
    def ids(self) -> NDArray[np.int32]:
        """The words of all lines, one after another: (N,)."""

    @property
    def starts(self) -> Numbers:
        """The first id of each line, and the number of ids."""

    @property
    def documents(self) -> Numbers:
        """The first line of each document, and the number of lines."""

    @property
    def words(self) -> tuple[str, ...]:
        """The words by id, by falling count; 0 is the unknown word."""

    @property
    def counts(self) -> Numbers:
        """How often each word occurs: (V,)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NeuralBatch:
    """L steps of B sequences: ids that are read and ids that follow them, (L, B).

    `real` marks predictions, in each column a run from the top, longest columns first. `resets`
    marks places before which a state is reset. `noise` (S,) are noise words. Where a batch
    `continues`, its columns are the first ones of the batch before. `texts` (B,) are the numbers
    of the texts of each column, `start` the place of its first row in them.
    """

    inputs: Tensor
    targets: Tensor
    real: Tensor
    continues: bool = False
    resets: Tensor | None = None
    noise: Tensor | None = None
    texts: Numbers | None = None
    start: int = 0

    @property
    def predictions(self) -> int:
        """How many words are predicted, line ends included."""
        return int(self.real.sum())

    def to(self, device: torch.device | str) -> NeuralBatch:
        """The same batch on a device."""
        return replace(
            self,
            inputs=self.inputs.to(device),
            targets=self.targets.to(device),
            real=self.real.to(device),
            resets=None if self.resets is None else self.resets.to(device),
            noise=None if self.noise is None else self.noise.to(device),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WordLines:
    """Lines of words by `ids`, with the first id of each line and the first line of each document.

    Both lists of places have one entry more, for the end.
    """

    ids: NDArray[np.integer]
    starts: Numbers
    documents: Numbers

    @classmethod
    def of_stream(cls, stream: IndexedWords) -> Self:
        """All lines of a stream."""
        return cls(ids=stream.ids, starts=stream.starts, documents=stream.documents)

    @classmethod
    def of_arrays(cls, lines: Sequence[NDArray[np.integer]]) -> Self:
        """Lines in memory, as one document."""
        starts = np.cumsum([0, *(len(line) for line in lines)], dtype=np.int64)
        ids = np.concatenate([np.zeros(0, dtype=np.int32), *lines])
        return cls(ids=ids, starts=starts, documents=np.array([0, len(lines)], dtype=np.int64))

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def predictions(self) -> int:
        """Words and line ends."""
        return int(self.starts[-1] - self.starts[0]) + len(self)

    def part(self, first: int, end: int) -> Self:
        """The lines from `first` up to `end`; a document that is cut stays one."""
        inside = self.documents[(self.documents > first) & (self.documents < end)]
        documents = np.concatenate([[first], inside, [end]]).astype(np.int64) - first
        return replace(self, starts=self.starts[first : end + 1], documents=documents)

    def bounds(self, reset: Reset) -> Numbers:
        """The first line of each text, where a text ends with a reset, and the number of lines."""
        ends = {
            "line": np.arange(len(self) + 1, dtype=np.int64),
            "document": self.documents,
            "none": np.array([0, len(self)], dtype=np.int64),
        }[reset]
        return np.unique(ends)  # an empty document is no text

    def tokens(self, first: int, end: int) -> Ids:
        """The ids of some lines with the end of each line: word w is w + 1."""
        starts = self.starts[first : end + 1]
        words = np.asarray(self.ids[starts[0] : starts[-1]]).astype(np.int32) + 1
        return np.insert(words, starts[1:] - starts[0], LINE_END)


def text_batches(
    texts: Sequence[Ids], *, window: int, most: int, noise: Tensor | None = None
) -> Iterator[NeuralBatch]:
    """Texts side by side, about `most` predictions at a time, in windows of `window` words.

    A text that is longer than a window continues in the next batch.
    """
    sizes = np.array([len(text) for text in texts], dtype=np.int64)
    for part in pack(np.minimum(sizes, window), most, order=np.argsort(-sizes, kind="stable")):
        longest = int(sizes[part[0]])
        for start in range(0, longest, window):
            inside = [number for number in part if sizes[number] > start]
            yield _window([texts[n] for n in inside], inside, start, window, noise)


def _window(
    texts: list[Ids], numbers: list[int], start: int, window: int, noise: Tensor | None
) -> NeuralBatch:
    length = min(window, max(len(text) for text in texts) - start)
    inputs = np.full((len(texts), length), LINE_END, dtype=np.int64)
    targets = np.full((len(texts), length), LINE_END, dtype=np.int64)
    real = np.zeros((len(texts), length), dtype=np.bool_)
    for row, text in enumerate(texts):
        some = text[start : start + length]
        targets[row, : len(some)] = some
        real[row, : len(some)] = True
        inputs[row, 1 : len(some)] = some[:-1]
        inputs[row, 0] = text[start - 1] if start else LINE_END
    return NeuralBatch(
        inputs=torch.from_numpy(inputs.T.copy()),
        targets=torch.from_numpy(targets.T.copy()),
        real=torch.from_numpy(real.T.copy()),
        continues=start > 0,
        noise=noise,
        texts=np.array(numbers, dtype=np.int64),
        start=start,
    )


class Lanes:
    """All texts one after another, in an order of their own for each epoch, cut into lanes.

    A step reads one window of every lane; states pass from step to step, and are reset where a
    text begins. Nothing is left out: the last lane is shorter. A window is a function of the step.
    """

    def __init__(
        self, lines: WordLines, reset: Reset, *, lanes: int, window: int, seed: int
    ) -> None:
        self._lines = lines
        self._bounds = lines.bounds(reset)
        self._window = window
        self._lanes = lanes
        self._length = -(-lines.predictions // lanes)
        self._places = lines.starts - lines.starts[0] + np.arange(len(lines) + 1)  # of lines
        self._sizes = np.diff(self._places[self._bounds])  # of each text, line ends included
        self._epochs = Epochs(len(self._sizes), seed)
        self._order: tuple[int, Numbers, Numbers] | None = None

    @property
    def steps(self) -> int:
        """The windows of an epoch."""
        return -(-self._length // self._window)

    def batch(self, step: int, noise: Tensor | None = None) -> NeuralBatch:
        """The window of a step."""
        epoch, window = divmod(step, self.steps)
        first = window * self._window
        length = min(self._window, self._length - first)
        inputs = np.full((self._lanes, length), LINE_END, dtype=np.int64)
        targets = np.full((self._lanes, length), LINE_END, dtype=np.int64)
        real = np.zeros((self._lanes, length), dtype=np.bool_)
        resets = np.zeros((self._lanes, length), dtype=np.bool_)
        for lane in range(self._lanes):
            place = lane * self._length + first
            some, begins = self._read(epoch, place - 1, place + length)
            count = len(some) - 1
            if count <= 0:
                continue
            targets[lane, :count] = some[1:]
            real[lane, :count] = True
            resets[lane, :count] = begins[1:]
            inputs[lane, :count] = np.where(begins[1:], LINE_END, some[:-1])
        if window == 0:
            resets[:, 0] = True
        return NeuralBatch(
            inputs=torch.from_numpy(inputs.T.copy()),
            targets=torch.from_numpy(targets.T.copy()),
            real=torch.from_numpy(real.T.copy()),
            continues=step > 0,
            resets=torch.from_numpy(resets.T.copy()),
            noise=noise,
        )

    def _read(self, epoch: int, start: int, end: int) -> tuple[Ids, NDArray[np.bool_]]:
        """The tokens from `start` (-1: a line end) up to `end`, and which begin a text."""
        order, ends = self._ordered(epoch)
        head = [np.zeros(1, dtype=np.int32)] if start < 0 else []
        tokens = [np.zeros(0, dtype=np.int32), *head]
        begins = [np.zeros(len(head), dtype=np.bool_)]
        place = max(start, 0)
        text = int(np.searchsorted(ends, place, side="right"))
        while place < min(end, int(ends[-1])):
            number = int(order[text])
            inside = place - (int(ends[text]) - int(self._sizes[number]))
            whole = self._tokens(number, inside, inside + end - place)
            tokens.append(whole)
            begins.append(np.arange(inside, inside + len(whole)) == 0)
            place += len(whole)
            text += 1
        return np.concatenate(tokens), np.concatenate(begins)

    def _tokens(self, text: int, start: int, end: int) -> Ids:
        """Some tokens of a text: only the lines that hold them are read."""
        first, last = int(self._bounds[text]), int(self._bounds[text + 1])
        start, end = start + int(self._places[first]), end + int(self._places[first])
        low = int(np.searchsorted(self._places, start, side="right")) - 1
        high = min(int(np.searchsorted(self._places, end, side="left")), last)
        offset = int(self._places[low])
        return self._lines.tokens(low, high)[start - offset : end - offset]

    def _ordered(self, epoch: int) -> tuple[Numbers, Numbers]:
        """The texts of an epoch in their order, and where each ends."""
        if self._order is None or self._order[0] != epoch:
            size = len(self._sizes)
            rows = [self._epochs.row(epoch * size + place) for place in range(size)]
            order = np.array(rows, dtype=np.int64)
            self._order = (epoch, order, np.cumsum(self._sizes[order]))
        return self._order[1], self._order[2]
