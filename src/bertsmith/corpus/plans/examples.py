"""Examples for pre-training from a corpus: pure functions of a seed, an epoch and their numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from bertsmith.config import Settings
from bertsmith.corpus.assembly import Assembly
from bertsmith.corpus.plans.packed import doc_sentences, full_sentences
from bertsmith.corpus.plans.pairs import PairTask, segment_pairs, sentence_pairs
from bertsmith.corpus.plans.plan import Plan
from bertsmith.corpus.rows import Longs, RowsBatch
from bertsmith.corpus.view import CorpusView, TokenFiles
from bertsmith.errors import ConfigError
from bertsmith.random_keys import hashes, key_of

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """What an epoch makes of the tokens of its documents."""

    tokens: int
    used: int
    """Tokens that stand in at least one example."""
    again: int
    """Further uses: random second segments, and ends of documents that took text along."""

    @property
    def left_out(self) -> int:
        """Tokens that no example of the epoch holds."""
        return self.tokens - self.used


class CorpusExamples:
    """The examples of some documents of a corpus.

    Only the plan of the latest epoch is cached; counts are cached for all.
    """

    def __init__(
        self,
        corpus: TokenFiles,
        documents: NDArray[np.integer],
        *,
        kind: InputKind = "segment_pair",
        max_length: int = 128,
        short: float = 0.1,
        pair: PairTask | None = None,
        seed: int = 0,
    ) -> None:
        self.kind = kind
        self.pair = pair
        self._short = short
        self._seed = seed
        self._view = CorpusView(corpus, documents)
        self._assembly = Assembly(corpus, paired=kind in PAIRED)
        self._room = max_length - self._assembly.specials
        if self._room < 2:
            raise ConfigError(
                f"max_length {max_length} leaves no room next to {self._assembly.specials} special "
                "tokens; take at least 8"
            )
        self._plan: tuple[int, Plan] | None = None
        self._counts: dict[int, int] = {}

    @classmethod
    def of(
        cls,
        corpus: TokenFiles,
        documents: NDArray[np.integer],
        settings: InputSettings,
        *,
        seed: int = 0,
    ) -> Self:
        """The inputs that settings ask for."""
        return cls(
            corpus,
            documents,
            kind=settings.kind,
            max_length=settings.max_length,
            short=settings.short,
            pair=settings.pair,
            seed=seed,
        )

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
        return self._assembly.rows(self.plan(epoch), numbers, keys)

    def coverage(self, epoch: int) -> Coverage:
        """How often the tokens of the documents are used in an epoch; reads the whole plan."""
        plan, view = self.plan(epoch), self._view
        change = np.zeros(len(view.files.tokens) + 1, dtype=np.int32)
        np.add.at(change, plan.starts, 1)
        np.add.at(change, plan.stops, -1)
        used = int(np.count_nonzero(np.cumsum(change)[:-1]))
        total = int((plan.stops - plan.starts).sum())
        return Coverage(tokens=view.tokens, used=used, again=total - used)

    def plan(self, epoch: int) -> Plan:
        """The plan of an epoch, made on first use."""
        if self._plan is None or self._plan[0] != epoch:
            key = key_of(self._seed, "plan", epoch)
            plan = PLANNERS[self.kind](self._view, self._room, self._short, self.pair, key)
            if not plan.count:
                raise ConfigError(
                    f"these documents give no example of the kind {self.kind}: each has fewer "
                    "than two sentences; take full_sentences"
                )
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
