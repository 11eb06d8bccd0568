"""What a masking scheme does to given texts: some token by token, all of them in figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from bertsmith.corpus.rows import RowsBatch, begins, rows_of
from bertsmith.objectives.masking.masking import Masked, Masking
from bertsmith.objectives.masking.replacement import FATES, SHOWN
from bertsmith.text.blocks import groups
from bertsmith.text.encoding import Encoding
from bertsmith.text.tokenizer import Tokenizer

BATCH = 256  # texts hidden at a time


@dataclass(frozen=True, slots=True)
class Piece:
    """A token before and after; `opens` and `closes` mark where a hidden unit begins and ends."""

    before: str
    after: str
    fate: str
    opens: bool
    closes: bool


@dataclass(slots=True)
class Tally:
    """Figures over all texts, to compare with the settings."""

    texts: int = 0
    tokens: int = 0
    hidden: int = 0
    units: int = 0
    fates: Counter[str] = field(default_factory=Counter)
    lengths: Counter[int] = field(default_factory=Counter)
    """Hidden units by their number of words."""

    @property
    def rate(self) -> float:
        """The share of tokens that was hidden."""
        return self.hidden / max(self.tokens, 1)

    def share(self, fate: str) -> float:
        """The share of a fate among hidden tokens."""
        return self.fates[fate] / max(self.hidden, 1)


@dataclass(frozen=True, slots=True)
class Preview:
    """The first texts as pieces, and the figures of all."""

    samples: list[list[Piece]]
    tally: Tally


def preview(
    texts: Iterable[str],
    tokenizer: Tokenizer,
    masking: Masking,
    *,
    share: float = 0.0,
    count: int = 5,
    seed: int = 0,
) -> Preview:
    """Hide tokens of texts as training would when `share` of it is done; show `count` of them."""
    samples: list[list[Piece]] = []
    tally = Tally()
    for batch in groups(texts, BATCH):
        encodings = [one for one in tokenizer.encode_batch(batch) if (one.words >= 0).any()]
        rows = rows_of(encodings, seed=seed, first=tally.texts)
        masked = masking(rows, share)
        _count(tally, rows, masked)
        for number, encoding in enumerate(encodings[: max(count - len(samples), 0)]):
            samples.append(_pieces(encoding, int(rows.starts[number]), rows, masked, tokenizer))
    return Preview(samples, tally)


def _count(tally: Tally, rows: RowsBatch, masked: Masked) -> None:
    tally.texts += len(rows.lengths)
    tally.tokens += int(rows.real.sum())
    tally.hidden += int(masked.hidden.sum())
    for fate, number in enumerate(np.bincount(masked.fates, minlength=len(FATES)).tolist()):
        if fate != SHOWN:
            tally.fates[FATES[fate]] += number
    opens = begins(masked.groups, rows)
    unit = np.cumsum(opens)
    words = begins(rows.words, rows) | opens
    sizes = np.bincount(unit[words & masked.hidden])
    tally.units += int((sizes > 0).sum())
    for size, number in enumerate(np.bincount(sizes[sizes > 0]).tolist()):
        if number:
            tally.lengths[size] += number


def _pieces(
    encoding: Encoding, start: int, rows: RowsBatch, masked: Masked, tokenizer: Tokenizer
) -> list[Piece]:
    here = slice(start, start + len(encoding))
    opens = begins(masked.groups, rows)
    ends = np.append(opens[1:] | ~rows.real[1:], True)
    columns = (masked.ids[here], masked.fates[here], masked.hidden[here], opens[here], ends[here])
    pieces = []
    for before, now, fate, hidden, first, last in zip(
        encoding.tokens, *(column.tolist() for column in columns), strict=True
    ):
        after = tokenizer.id_to_token(now) or ""
        pieces.append(Piece(before, after, FATES[fate], hidden and first, hidden and last))
    return pieces
