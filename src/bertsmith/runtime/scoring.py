"""Pseudo-log-likelihood of texts under a masked LM, and accuracy on minimal pairs (BLiMP).

Each token is masked in turn and scored with all others in sight (Salazar et al. 2020,
arXiv:1910.14659). Only the masked row of each copy is computed in the last layer and reaches the
vocabulary.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bertsmith.errors import BertsmithError, InputFileError
from bertsmith.runtime.engines.batches import Ids, RowBatch, pack_rows
from bertsmith.runtime.engines.engine import batch_budget
from bertsmith.runtime.host import not_finite
from bertsmith.runtime.mask_filling import MaskedModel
from bertsmith.text.blocks import groups
from bertsmith.text.encoding import Encoding
from bertsmith.text.truncation import Truncation

# "token": one token is masked at a time. "word": with it the rest of its word, so that a long
# word is not guessed from its own end (Kauf and Ivanova 2023, arXiv:2305.10588).
Hide = Literal["token", "word"]
BUDGET = 4096  # tokens per batch of torch
BLOCK = 256  # texts whose copies are sorted by length together; even, so that pairs stay together


@dataclass(frozen=True, slots=True, kw_only=True)
class TextScore:
    """The log-probability of each token of a text, special tokens left out."""

    tokens: tuple[str, ...]
    values: tuple[float, ...]

    @property
    def total(self) -> float:
        """The pseudo-log-likelihood."""
        return float(np.sum(np.array(self.values, dtype=np.float64)))


@dataclass(frozen=True, slots=True)
class _Copy:
    """A text with some tokens hidden: which text, which of its tokens is scored."""

    text: int
    place: int
    ids: Ids


def score_texts(
    model: MaskedModel,
    texts: Iterable[str],
    *,
    hide: Hide = "token",
    budget: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Iterator[TextScore]:
    """A score for each text, in order, in bounded memory; equal neighbors score equal."""
    done = 0
    for block in groups(texts, BLOCK):
        encodings = [_encoded(model, text, done + number) for number, text in enumerate(block)]
        distinct: dict[bytes, int] = {}
        for number, encoding in enumerate(encodings):
            distinct.setdefault(encoding.ids.tobytes(), number)
        values = [np.zeros(len(encoding), dtype=np.float64) for encoding in encodings]
        copies = [copy for n in distinct.values() for copy in _copies(model, encodings, n, hide)]
        _score(model, copies, encodings, values, budget)
        for number, encoding in enumerate(encodings):
            real = encoding.fields >= 0
            scores = values[distinct[encoding.ids.tobytes()]][real]
            if not np.isfinite(scores).all():
                raise not_finite(f"text {done + number + 1:,}")
            tokens = np.array(encoding.tokens, dtype=object)[real]
            yield TextScore(tokens=tuple(tokens.tolist()), values=tuple(scores.tolist()))
        done += len(block)
        if progress is not None:
            progress(done)


def _encoded(model: MaskedModel, text: str, number: int) -> Encoding:
    whole = Truncation(max_length=model.longest, strict=True)
    try:
        return model.tokenizer.encode(text, truncation=whole)
    except BertsmithError as fault:
        raise type(fault)(f"text {number + 1}: {fault}") from fault


def _copies(
    model: MaskedModel, encodings: Sequence[Encoding], number: int, hide: Hide
) -> Iterator[_Copy]:
    encoding = encodings[number]
    for place in np.flatnonzero(encoding.fields >= 0).tolist():
        ids = encoding.ids.copy()
        if hide == "word":
            ids[place:][encoding.words[place:] == encoding.words[place]] = model.mask_id
        ids[place] = model.mask_id
        yield _Copy(number, place, ids)


def _score(
    model: MaskedModel,
    copies: Sequence[_Copy],
    encodings: Sequence[Encoding],
    values: Sequence[NDArray[np.float64]],
    budget: int | None,
) -> None:
    """Fill `values` with the log-probability of each hidden token."""
    ids = [copy.ids for copy in copies]
    tokens = sum(map(len, ids))
    engines = model.host.engines
    engine = engines.prepare(engines.flops(tokens, len(ids)))
    if budget is None:
        budget = BUDGET if engine.streams == 1 else batch_budget(engine, tokens)

    def rows(batch: RowBatch) -> list[int]:
        firsts = zip(batch.texts, batch.starts.tolist(), strict=False)
        return [first + copies[number].place for number, first in firsts]

    ended = model.host.run(
        engine,
        pack_rows(ids, budget=budget),
        lambda _, hidden: model.log_probabilities(hidden),
        rows,
    )
    for batch, scores in ended:
        for row, number in zip(scores.cpu().numpy(), batch.texts, strict=True):
            copy = copies[number]
            values[copy.text][copy.place] = row[encodings[copy.text].ids[copy.place]]


@dataclass(frozen=True, slots=True, kw_only=True)
class MinimalPair:
    """A good text and a bad one that differ in what a paradigm tests."""

    good: str
    bad: str
    phenomenon: str
    paradigm: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PairAccuracy:
    """How a model did on some pairs; a tie counts one half."""

    name: str
    pairs: int
    points: float
    ties: int

    @property
    def accuracy(self) -> float:
        """Points per pair."""
        return self.points / self.pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class PairReport:
    """All pairs together, by phenomenon, and by paradigm."""

    overall: PairAccuracy
    phenomena: tuple[PairAccuracy, ...]
    paradigms: tuple[PairAccuracy, ...]


def read_pairs(folder: Path, *, limit: int | None = None) -> list[MinimalPair]:
    """The pairs of every .jsonl file of a folder, at most `limit` of each file."""
    files = sorted(folder.glob("*.jsonl")) or sorted((folder / "data").glob("*.jsonl"))
    if not files:
        raise InputFileError(f"{folder} holds no .jsonl files; BLiMP is a folder of 67 of them")
    return [pair for file in files for pair in islice(_read(file), limit)]


def compare_pairs(
    model: MaskedModel,
    pairs: Sequence[MinimalPair],
    *,
    hide: Hide = "token",
    progress: Callable[[int], None] | None = None,
) -> PairReport:
    """Score both texts of every pair and count how often the good one is likelier."""
    texts = (text for pair in pairs for text in (pair.good, pair.bad))
    scores = score_texts(model, texts, hide=hide, progress=lambda n: progress and progress(n // 2))
    points: dict[str, list[float]] = defaultdict(list)
    grouped: dict[str, list[float]] = defaultdict(list)
    for pair in pairs:
        good, bad = next(scores).total, next(scores).total
        point = 0.5 if good == bad else float(good > bad)
        points[pair.paradigm].append(point)
        grouped[pair.phenomenon].append(point)
    everything = [point for some in points.values() for point in some]
    return PairReport(
        overall=_accuracy("overall", everything),
        phenomena=tuple(_accuracy(name, some) for name, some in sorted(grouped.items())),
        paradigms=tuple(_accuracy(name, some) for name, some in sorted(points.items())),
    )


def _accuracy(name: str, points: Sequence[float]) -> PairAccuracy:
    return PairAccuracy(name=name, pairs=len(points), points=sum(points), ties=points.count(0.5))


def _read(file: Path) -> Iterator[MinimalPair]:
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InputFileError(f"{file}, line {number}: not JSON ({error})") from error
            keys = ("sentence_good", "sentence_bad")
            if not isinstance(row, dict) or not all(isinstance(row.get(k), str) for k in keys):
                raise InputFileError(
                    f"{file}, line {number}: needs {' and '.join(keys)}, both of them texts"
                )
            paradigm = str(row.get("UID", file.stem))
            yield MinimalPair(
                good=row["sentence_good"],
                bad=row["sentence_bad"],
                phenomenon=str(row.get("linguistics_term", paradigm)),
                paradigm=paradigm,
            )
