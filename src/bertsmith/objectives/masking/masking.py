"""A masking scheme and its settings: what is hidden together, what replaces it, how much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Self, Union

import numpy as np
from pydantic import Field, model_validator

from bertsmith.config import Settings, named_by_kind
from bertsmith.corpus.rows import Flags, Ints, Longs, RowsBatch, begins
from bertsmith.errors import ConfigError
from bertsmith.objectives.masking.grouping import GROUPINGS, Grouping, GroupingSettings, Token
from bertsmith.objectives.masking.replacement import (
    REPLACEMENTS,
    Mix,
    Replacement,
    ReplacementSettings,
)
from bertsmith.text.tokenizer import Tokenizer

_HALF = np.uint64(32)
Rate = Annotated[float, Field(gt=0.0, le=1.0)]


if TYPE_CHECKING:
    AnyGrouping = GroupingSettings
    AnyReplacement = ReplacementSettings
else:
    AnyGrouping = Annotated[
        Union[tuple(GROUPINGS.values())],  # noqa: UP007 - made from the table
        Field(discriminator="kind"),
        named_by_kind("grouping", GROUPINGS),
    ]
    AnyReplacement = Annotated[
        Union[tuple(REPLACEMENTS.values())],  # noqa: UP007
        Field(discriminator="kind"),
        named_by_kind("replacement", REPLACEMENTS),
    ]


class FallingRate(Settings):
    """A rate that changes linearly from `start` to `end` until a share of training is done."""

    start: Rate = 0.3
    end: Rate = 0.15
    until: Rate = 1.0

    def at(self, share: float) -> float:
        """The rate when `share` of training (0 to 1) is done."""
        done = min(max(share / self.until, 0.0), 1.0)
        return self.start + (self.end - self.start) * done


class GroupingStage(Settings):
    """A grouping and the share of training at which the next one takes over."""

    grouping: AnyGrouping
    until: Rate = 1.0


class MaskSettings(Settings):
    """A masking scheme.

    `grouping` is a name, a table with its settings, or a list of stages. `copies` makes masking
    static: so many different masks of a text, used in turn; without it each epoch has its own.
    """

    grouping: (
        AnyGrouping | Annotated[tuple[GroupingStage, ...], Field(min_length=1, strict=False)]
    ) = Token()
    rate: Rate | FallingRate = 0.15
    replacement: AnyReplacement = Mix()
    copies: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        ends = [stage.until for stage in self.stages]
        if ends != sorted(set(ends)):
            raise ValueError(f"stages must end one after another, not at {ends}")
        return self

    @property
    def stages(self) -> tuple[GroupingStage, ...]:
        """The groupings as stages, one for all of training where there is only one."""
        if isinstance(self.grouping, tuple):
            return self.grouping
        return (GroupingStage.model_construct(grouping=self.grouping, until=1.0),)

    def copy_of(self, epoch: int) -> int:
        """The number that examples and masks of an epoch are drawn from: static masking repeats."""
        return epoch if self.copies is None else epoch % self.copies


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Masked:
    """A batch after hiding; every array is (T,)."""

    ids: Ints
    hidden: Flags
    groups: Longs
    fates: Ints  # an index of replacement.FATES


@dataclass(frozen=True, slots=True, kw_only=True)
class Masking:
    """Hides tokens of a batch; groupings may follow one another over training (ERNIE).

    `stages` holds groupings, each with the share of training at which it ends.
    """

    stages: Sequence[tuple[float, Grouping]]
    replacement: Replacement
    rate: float | FallingRate = 0.15

    def __post_init__(self) -> None:
        if not self.stages:
            raise ConfigError("a masking needs at least one grouping")

    @classmethod
    def of(cls, settings: MaskSettings, tokenizer: Tokenizer) -> Masking:
        """The masking of these settings."""
        return cls(
            stages=[(stage.until, stage.grouping.make(tokenizer)) for stage in settings.stages],
            replacement=settings.replacement.make(tokenizer),
            rate=settings.rate,
        )

    def grouping(self, share: float) -> Grouping:
        """The grouping in use when `share` of training is done."""
        for until, grouping in self.stages:
            if share < until:
                return grouping
        return self.stages[-1][1]

    def __call__(self, rows: RowsBatch, share: float = 0.0) -> Masked:
        """Hide tokens of a batch; each text's choice is a function of its own key."""
        groups = self.grouping(share)(rows)
        rate = self.rate.at(share) if isinstance(self.rate, FallingRate) else self.rate
        hidden = choose(groups, rows, rate)
        ids, fates = self.replacement(rows, groups, hidden)
        return Masked(ids=ids, hidden=hidden, groups=groups, fates=fates)


def choose(groups: Longs, rows: RowsBatch, rate: float) -> Flags:
    """(T,) units -> (T,) hidden: in each text about `rate` of its real tokens, at least one unit.

    The units of a text lie in random order on a circle as long as the text. A window of
    rate x length is put on it at a random place, and the units that begin inside it are hidden.
    So every unit has exactly the chance `rate`, long or short; the expected number of hidden
    tokens is exact; and it never strays from that by more than one unit.
    """
    if not 0.0 < rate <= 1.0:
        raise ConfigError(f"the share of tokens to hide must be above 0 and at most 1, not {rate}")
    opens = begins(groups, rows)
    first = np.flatnonzero(opens)  # (G,) the first row of each unit
    if not len(first):
        return np.zeros(len(groups), dtype=bool)
    unit = np.cumsum(opens) - 1  # (T,)
    sizes = np.bincount(unit[rows.real], minlength=len(first))
    text = rows.texts[first]
    order = _random_order(rows, first, text)
    sizes, text = sizes[order], text[order]
    total = np.bincount(text, weights=sizes, minlength=len(rows.lengths))  # (B,) real tokens
    place = np.cumsum(sizes) - sizes
    place = place - (np.cumsum(total) - total)[text]  # where each unit begins on its circle
    away = place - (rows.text_uniforms("window") * total)[text]
    away = np.where(away < 0, away + total[text], away)
    heads = np.flatnonzero(np.append(True, text[1:] != text[:-1]))
    nearest = np.repeat(np.minimum.reduceat(away, heads), np.diff(np.append(heads, len(text))))
    chosen = np.zeros(len(first) + 1, dtype=bool)
    chosen[order] = (away < rate * total[text]) | (away == nearest)
    hidden: Flags = chosen[unit] & rows.real
    return hidden


def _random_order(rows: RowsBatch, first: Longs, text: Longs) -> Longs:
    """Units by text, at random inside of it: a sort of text, random bits and number in one word.

    The random bits are always 32 and ties go by number, so the order in a text does not depend
    on what else is in the batch.
    """
    start = np.searchsorted(text, np.arange(len(rows.lengths)))  # first unit of each text
    number = np.arange(len(first)) - start[text]
    low = int(number.max()).bit_length()
    if low + len(rows.lengths).bit_length() > 32:
        raise ConfigError(
            f"{len(rows.lengths)} texts of up to {int(number.max()) + 1} units are too many for "
            "one batch; make smaller batches"
        )
    keys = text.astype(np.uint64) << np.uint64(32 + low)
    keys |= (rows.bits("order", first) >> _HALF) << np.uint64(low)
    keys |= number.astype(np.uint64)
    keys.sort()
    texts = (keys >> np.uint64(32 + low)).astype(np.int64)
    return start[texts] + (keys & np.uint64((1 << low) - 1)).astype(np.int64)
