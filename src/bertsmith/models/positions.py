"""Kinds of positions as data: their numbers, their keys in config.json, their modules."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, ClassVar

from bertsmith.errors import ConfigError
from bertsmith.models.config import values
from bertsmith.models.config.values import Config

if TYPE_CHECKING:
    from bertsmith.nn.positions import AttentionPositions

MOST = 2**31 - 1  # of any whole number in a spec
MOST_POSITIONS = 16_777_216


@dataclass(frozen=True, slots=True)
class RowsKey:
    """The key of config.json for the rows of a position table.

    `uncounted` rows stand before that of the first token and are left out of the number (BART's 2).
    """

    name: str = "max_position_embeddings"
    uncounted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Positions:
    """How a model knows the order of tokens; every kind is a subclass with whole numbers as fields.

    The defaults are those of positions that live inside attention. `kind` is their name in
    config.json; `attention` builds the module that computes them.
    """

    kind: ClassVar[str] = ""

    @property
    def table(self) -> tuple[int, int]:
        """Rows of a learned position embedding and the row of the first token; 0 rows: none."""
        return 0, 0

    @property
    def longest(self) -> int | None:
        """The longest text these positions can hold, None if there is no limit."""
        return None

    def attention(self) -> AttentionPositions | None:
        """A new module of positions inside attention; None if there are none."""
        return None

    def resized(self, longest: int, first: int) -> Positions:
        """For texts of that many tokens, whose first one has row `first` of a table."""
        return self

    def published(self, key: RowsKey) -> dict[str, object]:
        """The keys that config.json has for them; `key` is that of a table's rows."""
        return {}

    def from_published(self, config: Config, first: int, key: RowsKey) -> Positions:
        """Those of a config.json of a family that has positions of this kind."""
        return self

    def to_json(self) -> dict[str, object]:
        """Kind and numbers, as our own section of config.json has them."""
        return {"kind": self.kind, **asdict(self)}

    @classmethod
    def from_json(cls, record: Config) -> Positions:
        """What `to_json` wrote, checked."""
        names = sorted(field.name for field in fields(cls))
        if sorted(set(record) - {"kind"}) != names:
            raise ConfigError(f"{cls.kind} positions need exactly {', '.join(names)}")
        return cls(**{name: values.integer(record, name, 0, MOST) for name in names})


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned(Positions):
    """A trained row for each place; `first` is the row of the first token (2 in RoBERTa)."""

    kind: ClassVar[str] = "learned"
    rows: int = 512
    first: int = 0

    @property
    def table(self) -> tuple[int, int]:
        """All rows, and the first one in use."""
        return self.rows, self.first

    @property
    def longest(self) -> int:
        """The longest text these positions can hold."""
        return self.rows - self.first

    def resized(self, longest: int, first: int) -> Positions:
        """For texts of that many tokens, whose first one has row `first`."""
        return Learned(rows=longest + first, first=first)

    def published(self, key: RowsKey) -> dict[str, object]:
        """The number of rows."""
        return {key.name: self.rows - key.uncounted}

    def from_published(self, config: Config, first: int, key: RowsKey) -> Positions:
        """As many rows as the config has, those of the family where it has no number."""
        if config.get(key.name) is None:
            return replace(self, first=first)
        lowest = first + 1 - key.uncounted
        rows = values.integer(config, key.name, lowest, MOST_POSITIONS) + key.uncounted
        return Learned(rows=rows, first=first)

    @classmethod
    def from_json(cls, record: Config) -> Positions:
        """What `to_json` wrote, checked."""
        read = super(Learned, cls).from_json(record)
        if (read.longest or 0) < 1:
            raise ConfigError(f"positions have {read.table[0]} rows, all before the first one")
        return read


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionalRelative(Positions):
    """Fixed sinusoids of the clipped distance inside attention (NEZHA, arXiv:1909.00204)."""

    kind: ClassVar[str] = "functional_relative"
    clip: int = 64

    def attention(self) -> AttentionPositions:
        """The module that adds them to scores and values."""
        from bertsmith.nn.positions import FunctionalPositions  # torch, for models alone

        return FunctionalPositions(self.clip)

    def published(self, key: RowsKey) -> dict[str, object]:
        """The largest distance; the published code expects a number of positions, too."""
        return {"max_relative_position": self.clip, "max_position_embeddings": 512}

    def from_published(self, config: Config, first: int, key: RowsKey) -> Positions:
        """With the config's largest distance, 64 where it has none."""
        if config.get("max_relative_position") is None:
            return FunctionalRelative()
        return FunctionalRelative(clip=values.integer(config, "max_relative_position", 1, 65_536))

    @classmethod
    def from_json(cls, record: Config) -> Positions:
        """What `to_json` wrote; a distance of 0 counts as 1."""
        super(FunctionalRelative, cls).from_json(record)
        return cls(clip=max(values.integer(record, "clip", 0, MOST), 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentRecurrent(Positions):
    """Projected sinusoids of the distance (XLNet, arXiv:1906.08237), with relative segments.

    Distances beyond `clamp` count as it; 0 tells all of them apart.
    """

    kind: ClassVar[str] = "segment_recurrent"
    clamp: int = 0

    def attention(self) -> AttentionPositions:
        """The module that makes them; layers project them by themselves."""
        from bertsmith.nn.relative.attention import RelativePositions  # torch, for models alone

        return RelativePositions(self.clamp)

    def published(self, key: RowsKey) -> dict[str, object]:
        """The largest distance, -1 for none."""
        return {"clamp_len": self.clamp or -1}

    def from_published(self, config: Config, first: int, key: RowsKey) -> Positions:
        """With the config's largest distance; head widths that differ from D / H are refused."""
        heads, width = config.get("n_head"), config.get("d_head")
        if (
            width is not None
            and isinstance(heads, int)
            and config.get("d_model") != (heads * values.integer(config, "d_head", 1, MOST))
        ):
            raise ConfigError(
                f"d_head = {width} with {heads} heads does not make d_model = "
                f"{values.shown(config.get('d_model'))}, which is not supported"
            )
        if config.get("clamp_len") in (None, -1):
            return SegmentRecurrent()
        return SegmentRecurrent(clamp=values.integer(config, "clamp_len", 1, MOST))
