"""What takes the place of hidden tokens: [MASK], a random token, a similar word, or themselves.

To add one: a class that makes a Replacement, a line in REPLACEMENTS.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator

from bertsmith.config import Fraction, Settings
from bertsmith.corpus.rows import Flags, Ints, Longs, RowsBatch, begins
from bertsmith.errors import ConfigError
from bertsmith.objectives.masking.similar import SimilarWords, read_neighbors, read_synonyms
from bertsmith.text.tokenizer import Tokenizer

By = Literal["token", "word", "unit"]

SHOWN, MASKED, RANDOM, KEPT, SIMILAR = range(5)
FATES = ("shown", "mask", "random", "keep", "similar")
"""What can become of a token, by its number."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Replacement:
    """Shares of the four fates of a hidden token, and what is drawn once for: token, word, unit."""

    mask_id: int | None
    ordinary: Longs  # ids that a random token is drawn from
    mask: float = 0.8
    random: float = 0.1
    keep: float = 0.1
    similar: float = 0.0
    by: By = "token"
    words: SimilarWords | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if abs(sum(self.shares) - 1.0) > 1e-6 or min(self.shares) < 0:
            raise ConfigError(f"the shares of a replacement must add up to 1, not {self.shares}")
        if self.mask and self.mask_id is None:
            raise ConfigError("this vocabulary has no mask token; take the replacement random")
        if self.similar and (self.words is None or self.by == "token"):
            raise ConfigError("similar words need a list of them, and are drawn by word or unit")

    @property
    def shares(self) -> tuple[float, float, float, float]:
        """The shares of mask, random, keep and similar."""
        return (self.mask, self.random, self.keep, self.similar)

    def __call__(self, rows: RowsBatch, groups: Longs, hidden: Flags) -> tuple[Ints, Ints]:
        """The ids after hiding (T,), and each token's fate (T,)."""
        at = np.flatnonzero(hidden)
        ids = rows.ids.copy()
        fates = np.zeros(len(ids), dtype=np.int32)
        limits = np.cumsum(self.shares)[:-1]
        drawn = rows.uniforms("fate", self._head(rows, groups, at))
        fates[at] = 1 + np.searchsorted(limits, drawn, side="right")
        if self.similar and self.words is not None:
            self._put_similar(rows, groups, ids, fates)
        if self.mask_id is not None:
            ids[fates == MASKED] = self.mask_id
        lucky = np.flatnonzero(fates == RANDOM)
        number = (rows.uniforms("token", lucky) * len(self.ordinary)).astype(np.int64)
        ids[lucky] = self.ordinary[number]
        return ids, fates

    def _head(self, rows: RowsBatch, groups: Longs, at: Longs) -> Longs:
        """The row whose random number decides for each row of `at`."""
        if self.by == "token":
            return at
        opens = begins(groups, rows)
        if self.by == "word":
            opens |= begins(rows.words, rows)
        head: Longs = np.maximum.accumulate(np.where(opens, np.arange(len(opens)), 0))[at]
        return head

    def _put_similar(self, rows: RowsBatch, groups: Longs, ids: Ints, fates: Ints) -> None:
        """Write similar words over words of that fate; a word without one gets random tokens."""
        if self.words is None:
            return
        opens = begins(rows.words, rows) | begins(groups, rows)
        start = np.flatnonzero(opens & (fates == SIMILAR))
        word = np.cumsum(opens)
        sizes = np.bincount(word[fates == SIMILAR], minlength=int(word[-1]) + 1)[word[start]]
        entry = self.words.find(rows.ids, start, sizes)
        fates[fates == SIMILAR] = RANDOM
        known = np.flatnonzero(entry >= 0)
        start, sizes, entry = start[known], sizes[known], entry[known]
        source = self.words.pick(entry, rows.uniforms("similar", start))
        for place in range(int(sizes.max(initial=0))):  # at most as often as a word has pieces
            longer = sizes > place
            ids[start[longer] + place] = self.words.tokens[source[longer] + place]
            fates[start[longer] + place] = SIMILAR


class ReplacementSettings(Settings):
    """The settings of a replacement."""

    kind: str

    def make(self, tokenizer: Tokenizer) -> Replacement:
        """The replacement itself."""
        raise ConfigError(f"the replacement {self.kind!r} has no `make`")


class Mix(ReplacementSettings):
    """BERT's 80 / 10 / 10, or any other mix, drawn for each token, word or unit.

    BERT and BERT-wwm draw by token, SpanBERT by unit.
    """

    kind: Literal["mix"] = "mix"
    mask: Fraction = 0.8
    random: Fraction = 0.1
    keep: Fraction = 0.1
    by: By = "token"

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        if abs(self.mask + self.random + self.keep - 1.0) > 1e-6:
            raise ValueError("mask, random and keep must add up to 1")
        return self

    def make(self, tokenizer: Tokenizer) -> Replacement:
        """The replacement itself."""
        return Replacement(
            mask_id=tokenizer.special.mask,
            ordinary=ordinary_ids(tokenizer),
            mask=self.mask,
            random=self.random,
            keep=self.keep,
            by=self.by,
        )


class AllMask(ReplacementSettings):
    """Every hidden token becomes [MASK]."""

    kind: Literal["all_mask"] = "all_mask"

    def make(self, tokenizer: Tokenizer) -> Replacement:
        """The replacement itself."""
        return Mix(mask=1.0, random=0.0, keep=0.0).make(tokenizer)


class Random(ReplacementSettings):
    """Every hidden token becomes another one at random."""

    kind: Literal["random"] = "random"

    def make(self, tokenizer: Tokenizer) -> Replacement:
        """The replacement itself."""
        return Mix(mask=0.0, random=1.0, keep=0.0).make(tokenizer)


class Similar(ReplacementSettings):
    """Similar words, random ones where there are none (MacBERT, arXiv:2004.13922).

    `synonyms` is a file of lines with words of one meaning, or a .json of word: [words];
    `vectors` one of word vectors, of which the first `words` are read and the nearest `neighbors`
    taken. Give one of the two.
    """

    kind: Literal["similar"] = "similar"
    synonyms: Path | None = Field(default=None, strict=False)
    vectors: Path | None = Field(default=None, strict=False)
    words: int = Field(default=20_000, ge=2)
    neighbors: int = Field(default=5, ge=1)
    similar: Fraction = 0.8
    random: Fraction = 0.1
    keep: Fraction = 0.1

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.synonyms is None) == (self.vectors is None):
            raise ValueError("give either a file of `synonyms` or one of word `vectors`")
        if abs(self.similar + self.random + self.keep - 1.0) > 1e-6:
            raise ValueError("similar, random and keep must add up to 1")
        return self

    def make(self, tokenizer: Tokenizer) -> Replacement:
        """The replacement itself; computing neighbors of 20,000 vectors takes seconds."""
        if self.synonyms is not None:
            table = read_synonyms(self.synonyms)
        elif self.vectors is not None:
            table = read_neighbors(self.vectors, words=self.words, neighbors=self.neighbors)
        else:
            raise ConfigError("similar words need a file of synonyms or of word vectors")
        return Replacement(
            mask_id=tokenizer.special.mask,
            ordinary=ordinary_ids(tokenizer),
            mask=0.0,
            random=self.random,
            keep=self.keep,
            similar=self.similar,
            by="word",
            words=SimilarWords(table, tokenizer),
        )


def ordinary_ids(tokenizer: Tokenizer) -> Longs:
    """Ids of tokens a text can have: neither control tokens nor [unused...] places."""
    controls = tokenizer.control_tokens
    special = tokenizer.special
    out = {special.pad, special.unk, special.cls, special.sep, special.mask}
    ordinary = []
    for number in range(tokenizer.vocab_size):
        token = tokenizer.id_to_token(number)
        if token is None or number in out or token in controls or token.startswith("[unused"):
            continue
        ordinary.append(number)
    return np.array(ordinary or [0], dtype=np.int64)


REPLACEMENTS: dict[str, type[ReplacementSettings]] = {
    "mix": Mix,
    "all_mask": AllMask,
    "random": Random,
    "similar": Similar,
}
