"""How likely a masked LM finds a text: pseudo-log-likelihood, and pairs of texts told apart.

Each token is masked in turn and scored with all others in sight (Salazar et al. 2020,
arXiv:1910.14659). Only the masked row of each copy is computed in the last layer and reaches the
vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bertsmith.errors import BertsmithError
from bertsmith.runtime.mask_filling import Ids, MaskedModel
from bertsmith.text.encoding import Encoding
from bertsmith.text.truncation import Truncation

# "token": one token is masked at a time. "word": with it the rest of its word, so that a long
# word is not guessed from its own end (Kauf and Ivanova 2023, arXiv:2305.10588).
Hide = Literal["token", "word"]
HIDES: tuple[Hide, ...] = ("token", "word")
BUDGET = 4096  # tokens a batch
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
    """A text with some tokens hidden: which text, which of its tokens is asked for."""

    text: int
    place: int
    ids: Ids


def score_texts(
    model: MaskedModel,
    texts: Iterable[str],
    *,
    hide: Hide = "token",
    budget: int = BUDGET,
    progress: Callable[[int], None] | None = None,
) -> Iterator[TextScore]:
    """A score for each text, in order, in bounded memory; equal neighbors score equal."""
    done = 0
    for block in _blocks(texts):
        encodings = [_encoded(model, text, done + number) for number, text in enumerate(block)]
        distinct: dict[bytes, int] = {}
        for number, encoding in enumerate(encodings):
            distinct.setdefault(encoding.ids.tobytes(), number)
        values = [np.zeros(len(encoding), dtype=np.float64) for encoding in encodings]
        copies = [copy for n in distinct.values() for copy in _copies(model, encodings, n, hide)]
        for batch in _batches(copies, budget):
            _score(model, batch, encodings, values)
        for encoding in encodings:
            real = encoding.fields >= 0
            found = values[distinct[encoding.ids.tobytes()]][real]
            tokens = np.array(encoding.tokens, dtype=object)[real]
            yield TextScore(tokens=tuple(tokens.tolist()), values=tuple(found.tolist()))
        done += len(block)
        if progress is not None:
            progress(done)


def _blocks(texts: Iterable[str]) -> Iterator[list[str]]:
    block: list[str] = []
    for text in texts:
        block.append(text)
        if len(block) == BLOCK:
            yield block
            block = []
    if block:
        yield block


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


def _batches(copies: Sequence[_Copy], budget: int) -> Iterator[list[_Copy]]:
    """Copies of one length together: attention then needs no padding."""
    batch: list[_Copy] = []
    tokens = 0
    for copy in sorted(copies, key=lambda copy: -len(copy.ids)):
        if batch and tokens + len(copy.ids) > budget:
            yield batch
            batch, tokens = [], 0
        batch.append(copy)
        tokens += len(copy.ids)
    if batch:
        yield batch


def _score(
    model: MaskedModel,
    batch: Sequence[_Copy],
    encodings: Sequence[Encoding],
    values: Sequence[np.ndarray[tuple[int], np.dtype[np.float64]]],
) -> None:
    starts = np.cumsum([0, *(len(copy.ids) for copy in batch[:-1])])
    rows = [int(start) + copy.place for start, copy in zip(starts, batch, strict=True)]
    found = model.log_probabilities([copy.ids for copy in batch], rows).cpu().numpy()  # (P, V)
    for row, copy in zip(found, batch, strict=True):
        values[copy.text][copy.place] = row[encodings[copy.text].ids[copy.place]]
