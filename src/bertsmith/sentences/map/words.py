"""Words in sentences: where they occur, and the vector of each occurrence."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertsmith.errors import ConfigError
from bertsmith.runtime.engines.batches import Ids, RowBatch, pack_rows
from bertsmith.runtime.engines.engine import Engine, batch_budget
from bertsmith.runtime.host import Host, not_finite
from bertsmith.runtime.loading import LoadedModel
from bertsmith.runtime.text_vectors import mixing_engine
from bertsmith.text.encoding import Encoding
from bertsmith.text.segment import CHINESE, is_chinese
from bertsmith.text.truncation import Truncation
from bertsmith.wording import shown

_CHUNK = 4096  # texts whose tokens are held at once
_RANGES = "".join(f"{chr(first)}-{chr(last)}" for first, last in CHINESE)
_LETTER = rf"[^\W{_RANGES}]"  # of a script that separates its words


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A word, by its number, at the characters start to end of a text."""

    start: int
    end: int
    word: int


class WordFinder:
    """Finds whole words in any case; Chinese words wherever their characters stand together."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = tuple(dict.fromkeys(word.strip() for word in words))
        if not self.words or not all(self.words):
            raise ConfigError("the word to find is empty; give one with letters")
        # The longest first: of two words at one place, the longer one is meant.
        order = sorted(range(len(self.words)), key=lambda one: -len(self.words[one]))
        pattern = "|".join(f"(?P<w{one}>{_bounded(self.words[one])})" for one in order)
        self._pattern = re.compile(pattern, re.IGNORECASE)

    def of(self, text: str) -> Iterator[Occurrence]:
        """Every occurrence in a text, in order."""
        for match in self._pattern.finditer(text):
            yield Occurrence(match.start(), match.end(), int((match.lastgroup or "w0")[1:]))


def _bounded(word: str) -> str:
    """A pattern that is not a part of a longer word, where words have borders."""
    before = rf"(?<!{_LETTER})" if _has_borders(word[0]) else ""
    after = rf"(?!{_LETTER})" if _has_borders(word[-1]) else ""
    return f"{before}{re.escape(word)}{after}"


def _has_borders(character: str) -> bool:
    return re.match(r"\w", character) is not None and not is_chinese(character)


Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class OccurrenceVectors:
    """Vectors (m, D) of the spans that the model reads, by their numbers; how many it does not."""

    read: list[int]
    vectors: NDArray[np.float32]
    beyond: int
    """Spans after the last token that the model reads."""


def word_vectors(
    model: LoadedModel,
    texts: Sequence[str],
    spans: Sequence[Span],
    *,
    layer: int | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> OccurrenceVectors:
    """The hidden state of a word in each text: the mean over the tokens that share its characters.

    A span is where the word stands, start to end. Equal texts are computed once. `layer` counts
    from 0, the embeddings; the last layer if unset. `progress` gets the number of finished spans.
    """
    host = model.host
    mix = _mix(model, layer)
    in_text: dict[str, list[int]] = {}
    for at, text in enumerate(texts):
        in_text.setdefault(text, []).append(at)
    vectors = np.zeros((len(texts), host.model.spec.hidden), dtype=np.float32)
    read: list[int] = []
    distinct = list(in_text)
    for first in range(0, len(distinct), _CHUNK):
        chunk = distinct[first : first + _CHUNK]
        encodings = model.tokenizer.encode_batch(
            [text.lower() if model.settings.lowercase else text for text in chunk],
            truncation=Truncation(max_length=model.max_length),
        )
        rows = [
            [(at, _covering(encoding, spans[at])) for at in in_text[text]]
            for text, encoding in zip(chunk, encodings, strict=True)
        ]
        for at, vector in _means(host, mix, [one.ids for one in encodings], rows):
            if not np.isfinite(vector).all():
                raise not_finite(f"text {at + 1:,}, {shown(texts[at])}")
            vectors[at] = vector
            read.append(at)
            progress(len(read))
    read.sort()
    return OccurrenceVectors(read, vectors[read], len(texts) - len(read))


def _covering(encoding: Encoding, span: Span) -> list[int]:
    """The rows of the tokens that share characters with a span."""
    begins, ends = encoding.offsets.T
    inside = (encoding.fields >= 0) & (begins < span[1]) & (ends > span[0])
    rows: list[int] = np.flatnonzero(inside).tolist()
    return rows


def _means(
    host: Host,
    mix: Sequence[float] | None,
    ids: Sequence[Ids],
    tokens: Sequence[Sequence[tuple[int, list[int]]]],
) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """The mean over the rows of each span that has any, with its number.

    `tokens` has the spans of each text and their rows in it.
    """
    total = sum(map(len, ids))
    engine: Engine = (
        host.engines.prepare(host.engines.flops(total, len(ids)))
        if mix is None
        else mixing_engine(host, mix)
    )

    def places(batch: RowBatch) -> list[tuple[int, list[int]]]:
        """Numbers of spans and their rows in the batch."""
        return [
            (at, [int(start) + row for row in rows])
            for number, start in zip(batch.texts, batch.starts[:-1], strict=True)
            for at, rows in tokens[number]
            if rows
        ]

    def wanted(batch: RowBatch) -> list[int]:
        return sorted({row for _, rows in places(batch) for row in rows}) or [0]

    def pooled(batch: RowBatch, hidden: Tensor) -> Tensor:
        order = {row: at for at, row in enumerate(wanted(batch))}
        means = [hidden[[order[row] for row in rows]].mean(0) for _, rows in places(batch)]
        return torch.stack(means) if means else hidden[:0]

    batches = pack_rows(ids, budget=batch_budget(engine, total))
    for batch, means in host.run(engine, batches, pooled, rows=wanted):
        values = means.cpu().numpy()
        for (at, _), vector in zip(places(batch), values, strict=True):
            yield at, vector


def _mix(model: LoadedModel, layer: int | None) -> list[float] | None:
    """The weights of the layers; None is the last one alone."""
    last = model.host.model.spec.layers
    if layer is None or layer == last:
        return None
    if not 0 <= layer <= last:
        raise ConfigError(
            f"the model has layers 0 (the embeddings) to {last}, and layer {layer} is wanted"
        )
    return [1.0 if number == layer else 0.0 for number in range(last + 1)]
