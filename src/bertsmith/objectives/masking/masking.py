"""A masking scheme: what is hidden together, what takes its place, and how much is hidden."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from bertsmith.corpus.rows import Flags, Ints, Longs, RowsBatch
from bertsmith.errors import ConfigError
from bertsmith.objectives.masking.choosing import choose
from bertsmith.objectives.masking.grouping import Grouping
from bertsmith.objectives.masking.replacement import Replacement
from bertsmith.objectives.masking.settings import MaskSettings
from bertsmith.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Masked:
    """A batch after hiding; every array is (T,)."""

    ids: Ints
    hidden: Flags
    groups: Longs
    fates: Ints  # an index of replacement.FATES


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """The share of tokens to hide: from `start` to `end` until a share of training, then `end`."""

    start: float = 0.15
    end: float = 0.15
    until: float = 1.0

    def at(self, share: float) -> float:
        """The rate when `share` of training (0 to 1) is done."""
        done = min(max(share / self.until, 0.0), 1.0)
        return self.start + (self.end - self.start) * done


@dataclass(frozen=True, slots=True, kw_only=True)
class Masking:
    """Hides tokens of a batch; groupings may follow one another over training (ERNIE).

    `stages` holds groupings, each with the share of training at which it ends.
    """

    stages: Sequence[tuple[float, Grouping]]
    replacement: Replacement
    rate: Rate = field(default_factory=Rate)

    def __post_init__(self) -> None:
        if not self.stages:
            raise ConfigError("a masking needs at least one grouping")

    @classmethod
    def of(cls, settings: MaskSettings, tokenizer: Tokenizer) -> Masking:
        """The masking that settings ask for."""
        rate = settings.rate
        return cls(
            stages=[(stage.until, stage.grouping.make(tokenizer)) for stage in settings.stages],
            replacement=settings.replacement.make(tokenizer),
            rate=Rate(start=rate, end=rate)
            if isinstance(rate, float)
            else Rate(start=rate.start, end=rate.end, until=rate.until),
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
        hidden = choose(groups, rows, self.rate.at(share))
        ids, fates = self.replacement(rows, groups, hidden)
        return Masked(ids=ids, hidden=hidden, groups=groups, fates=fates)
