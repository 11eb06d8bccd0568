"""Examples from a file of labeled pairs of texts, as the readers of labeled data give them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertsmith.corpus.rows import Longs, RowsBatch, rows_of
from bertsmith.errors import InputFileError
from bertsmith.labeled.example import Label
from bertsmith.labeled.read.reader import read_examples
from bertsmith.labeled.spec import DataSpec
from bertsmith.random_keys import hashes, key_of, uniforms
from bertsmith.text.encoding import Encoding
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.text.truncation import Truncation
from bertsmith.wording import counted

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LabeledPairs:
    """Pairs of texts, and the number of each one's label among `labels`."""

    path: Path
    labels: tuple[str, ...]
    texts: tuple[tuple[str, str], ...]
    numbers: Longs

    @classmethod
    def read(cls, path: Path, labels: Sequence[str] | None = None) -> LabeledPairs:
        """Lines `text TAB text TAB label`; without `labels`, those of the file, in order."""
        spec = DataSpec(
            format="delimited",
            task="classify",
            delimiter="\t",
            quoting="none",
            header=False,
            text=(1, 2),
            label=(3,),
            labels=None if labels is None else tuple(labels),
        )
        rows = list(read_examples(path, spec))
        names = [row.target.name for row in rows if isinstance(row.target, Label)]
        if len(names) < len(rows):
            bare = next(row for row in rows if not isinstance(row.target, Label))
            raise InputFileError(f"{bare.place}: the third column has no label")
        known = tuple(labels) if labels is not None else tuple(sorted(set(names)))
        if len(known) < 2:
            raise InputFileError(f"{path}: all rows have the label {known[0]!r}; two are needed")
        number = {name: index for index, name in enumerate(known)}
        return cls(
            path,
            known,
            tuple((row.texts[0], row.texts[1]) for row in rows),
            np.array([number[name] for name in names], dtype=np.int64),
        )

    def part(self, held_out: float, *, training: bool) -> LabeledPairs:
        """The rows to train on, or those held out: by their number, whatever the seed."""
        draws = uniforms(key_of("labeled pairs"), np.arange(len(self.texts)))
        chosen = np.flatnonzero((draws < held_out) != training)
        texts = tuple(self.texts[number] for number in chosen.tolist())
        return replace(self, texts=texts, numbers=self.numbers[chosen])


class PairExamples:
    """Labeled pairs as examples `[CLS] A [SEP] B [SEP]`; the longer text of a pair is cut."""

    def __init__(
        self, pairs: LabeledPairs, tokenizer: Tokenizer, *, max_length: int, seed: int
    ) -> None:
        self._labels = pairs.numbers
        self._seed = seed
        limit = Truncation(max_length=max_length)
        self._encodings: list[Encoding] = [
            tokenizer.encode_fields(pair, truncation=limit) for pair in pairs.texts
        ]
        self._lengths = np.array([len(one) for one in self._encodings], dtype=np.int64)
        cut = sum(any(one.cut) for one in self._encodings)
        if cut:
            what = counted(cut, "pair")
            log.info("%s: %s cut to %d tokens", pairs.path, what, max_length)

    def count(self, epoch: int) -> int:
        """How many examples an epoch has."""
        return len(self._encodings)

    def lengths(self, epoch: int, numbers: NDArray[np.integer]) -> Longs:
        """(B,) the length of each example in rows, special tokens included."""
        found: Longs = self._lengths[numbers]
        return found

    def examples(self, epoch: int, numbers: NDArray[np.integer]) -> RowsBatch:
        """The examples of these numbers, one after another."""
        rows = rows_of([self._encodings[number] for number in numbers.tolist()])
        keys = hashes(key_of(self._seed, "example", epoch), np.asarray(numbers))
        return replace(rows, keys=keys, pair_labels=self._labels[numbers])
