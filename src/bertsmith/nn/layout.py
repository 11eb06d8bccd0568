"""Layout: the texts of a packed batch, the position of each row, and which rows each row sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np
import torch
from torch import Tensor

from bertsmith.errors import TextError


@dataclass(frozen=True, slots=True)
class Full:
    """Every row sees all rows of its text: bidirectional attention."""

    def check(self, lengths: Sequence[int]) -> None:
        """Fits every batch."""

    def to(self, device: torch.device | str) -> Full:
        """The same."""
        return self

    def take(self, texts: Sequence[int]) -> Full:
        """The same for some texts."""
        return self

    def mask(self, places: Tensor, keys: int, *, first: int) -> Tensor | None:
        """None: nothing is hidden."""
        return None


@dataclass(frozen=True, slots=True)
class Causal:
    """Every row sees itself and the rows before it: a left-to-right language model."""

    def check(self, lengths: Sequence[int]) -> None:
        """Fits every batch."""

    def to(self, device: torch.device | str) -> Causal:
        """The same."""
        return self

    def take(self, texts: Sequence[int]) -> Causal:
        """The same for some texts."""
        return self

    def mask(self, places: Tensor, keys: int, *, first: int) -> Tensor:
        """Query places (b, l) of texts from `first` on and m keys -> (b, l, m)."""
        return torch.arange(keys, device=places.device) <= places[:, :, None]


@dataclass(frozen=True, slots=True)
class Anticausal:
    """Every row sees itself and the rows after it: a right-to-left language model."""

    def check(self, lengths: Sequence[int]) -> None:
        """Fits every batch."""

    def to(self, device: torch.device | str) -> Anticausal:
        """The same."""
        return self

    def take(self, texts: Sequence[int]) -> Anticausal:
        """The same for some texts."""
        return self

    def mask(self, places: Tensor, keys: int, *, first: int) -> Tensor:
        """Query places (b, l) of texts from `first` on and m keys -> (b, l, m)."""
        return torch.arange(keys, device=places.device) >= places[:, :, None]


@dataclass(frozen=True, slots=True)
class Prefix:
    """A source that sees itself, then a target that sees the source and what comes before it.

    UniLM's sequence-to-sequence visibility (Dong et al. 2019, arXiv:1905.03197); `sources` (B,) is
    the number of source tokens of each text, the rest is its target.
    """

    sources: tuple[int, ...]

    def check(self, lengths: Sequence[int]) -> None:
        """Refuse source lengths that do not fit the texts."""
        fits = len(self.sources) == len(lengths) and all(
            0 <= source <= length for source, length in zip(self.sources, lengths, strict=False)
        )
        if not fits:
            raise TextError(
                f"Prefix needs a source length per text, at most the text's own: it has "
                f"{self.sources}, the texts {tuple(lengths)} tokens"
            )

    def to(self, device: torch.device | str) -> Prefix:
        """The same."""
        return self

    def take(self, texts: Sequence[int]) -> Prefix:
        """The same for some texts."""
        return Prefix(tuple(self.sources[text] for text in texts))

    def mask(self, places: Tensor, keys: int, *, first: int) -> Tensor:
        """Query places (b, l) of texts from `first` on and m keys -> (b, l, m)."""
        sources = torch.tensor(self.sources[first : first + len(places)], device=places.device)
        at = torch.arange(keys, device=places.device)
        return (at <= places[:, :, None]) | (at < sources[:, None, None])


@dataclass(frozen=True, slots=True)
class Mixed:
    """A visibility per text: `Prefix` by its source length, `Anticausal` where `backward`.

    A source of 0 tokens is causal, one as long as the text is full.
    """

    sources: tuple[int, ...]
    backward: tuple[bool, ...]

    def check(self, lengths: Sequence[int]) -> None:
        """Refuse another number of texts, or source lengths that do not fit them."""
        Prefix(self.sources).check(lengths)
        if len(self.backward) != len(lengths):
            raise TextError(f"Mixed has {len(self.backward)} directions for {len(lengths)} texts")

    def to(self, device: torch.device | str) -> Mixed:
        """The same."""
        return self

    def take(self, texts: Sequence[int]) -> Mixed:
        """The same for some texts."""
        return Mixed(
            tuple(self.sources[text] for text in texts),
            tuple(self.backward[text] for text in texts),
        )

    def mask(self, places: Tensor, keys: int, *, first: int) -> Tensor:
        """Query places (b, l) of texts from `first` on and m keys -> (b, l, m)."""
        backward = torch.tensor(self.backward[first : first + len(places)], device=places.device)
        return torch.where(
            backward[:, None, None],
            Anticausal().mask(places, keys, first=first),
            Prefix(self.sources).mask(places, keys, first=first),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Dense:
    """Any visibility: `visible` (B, L, M), boolean; row l of text b sees row m where it is True.

    L and M are the longest text that asks and that is looked at, in self-attention the same.
    Entries beyond a text's length are ignored.
    """

    visible: Tensor

    def check(self, lengths: Sequence[int]) -> None:
        """Refuse a matrix of another type or another batch."""
        longest = max(lengths, default=0)
        shape = (len(lengths), longest, longest)
        if tuple(self.visible.shape) != shape or self.visible.dtype != torch.bool:
            raise TextError(
                f"visible must be boolean {shape}, not {self.visible.dtype} "
                f"{tuple(self.visible.shape)}"
            )

    def to(self, device: torch.device | str) -> Dense:
        """The same on a device."""
        return Dense(self.visible.to(device, non_blocking=True))

    def take(self, texts: Sequence[int]) -> Dense:
        """The same for some texts; the matrix keeps its width."""
        return Dense(self.visible[list(texts)])

    def mask(self, places: Tensor, keys: int, *, first: int) -> Tensor:
        """Query places (b, l) of texts from `first` on and m keys -> (b, l, m)."""
        square = self.visible[first : first + len(places), :, :keys]
        return square.take_along_dim(places[:, :, None], dim=1)


@dataclass(frozen=True, slots=True, eq=False)
class Ordered:
    """Tokens in an order of their own (XLNet): a row sees itself and what has a lower rank.

    `ranks` (B, M) are -1 for tokens that all rows see, which themselves see no others. `strict`
    rows, the queries of XLNet's second stream, do not see themselves.
    """

    ranks: Tensor
    strict: bool = False

    def check(self, lengths: Sequence[int]) -> None:
        """Refuse ranks of another batch."""
        shape = (len(lengths), max(lengths, default=0))
        if tuple(self.ranks.shape) != shape:
            raise TextError(f"ranks must be {shape}, not {tuple(self.ranks.shape)}")

    def to(self, device: torch.device | str) -> Ordered:
        """The same on a device."""
        return Ordered(self.ranks.to(device, non_blocking=True), self.strict)

    def take(self, texts: Sequence[int]) -> Ordered:
        """The same for some texts; the ranks keep their width."""
        return Ordered(self.ranks[list(texts)], self.strict)

    def mask(self, places: Tensor, keys: int, *, first: int) -> Tensor:
        """Query places (b, l) of texts from `first` on and m keys -> (b, l, m)."""
        ranks = self.ranks[first : first + len(places)]
        mine, theirs = ranks.take_along_dim(places, dim=1)[:, :, None], ranks[:, None, :keys]
        visible = (theirs < mine) | (theirs < 0)
        itself = torch.arange(theirs.shape[2], device=places.device) == places[:, :, None]
        return visible & ~itself if self.strict else visible | itself


@dataclass(frozen=True, slots=True, eq=False)
class AfterMemory:
    """Rows that see as `sees` says, and before that the `memory` (B,) rows of their text."""

    sees: Causal | Anticausal | Prefix | Mixed | Dense | Ordered | AfterMemory
    memory: tuple[int, ...]

    def check(self, lengths: Sequence[int]) -> None:
        """Refuse another number of texts, or what does not fit `sees`."""
        if len(self.memory) != len(lengths):
            raise TextError(f"{len(self.memory)} memories for {len(lengths)} texts")
        self.sees.check(lengths)

    def to(self, device: torch.device | str) -> AfterMemory:
        """The same on a device."""
        return AfterMemory(self.sees.to(device), self.memory)

    def take(self, texts: Sequence[int]) -> AfterMemory:
        """The same for some texts."""
        return AfterMemory(self.sees.take(texts), tuple(self.memory[text] for text in texts))

    def mask(self, places: Tensor, keys: int, *, first: int) -> Tensor:
        """Query places (b, l) of texts from `first` on and m keys, memory first -> (b, l, m)."""
        size = torch.tensor(self.memory[first : first + len(places)], device=places.device)
        own = self.sees.mask(places, keys, first=first)
        at = torch.arange(keys, device=places.device) - size[:, None]  # (b, m)
        index = at.clamp(0, own.shape[2] - 1)[:, None].expand(-1, places.shape[1], -1)
        return own.take_along_dim(index, dim=2) | (at < 0)[:, None]


Sees = Full | Causal | Anticausal | Prefix | Mixed | Dense | Ordered | AfterMemory
FULL = Full()


@dataclass(frozen=True, slots=True)
class Layout:
    """Texts of `lengths` tokens one after another as T = sum(lengths) rows, without padding.

    `positions` (T,) is the position of each row in its text, by which it is embedded; `sees` is
    which rows of its own text a row may attend to.
    """

    lengths: tuple[int, ...]
    positions: Tensor
    sees: Sees = field(default=FULL)

    @classmethod
    def of(
        cls,
        lengths: Sequence[int],
        *,
        sees: Sees = FULL,
        device: torch.device | str | None = None,
    ) -> Layout:
        """The usual layout: positions count from 0 in each text.

        In numpy: batches are made in a thread of their own, and an operation of torch that works in
        parallel gives that thread OpenMP workers too. With more workers than cores all of them go
        to sleep between operations, which doubled the time of small training steps.
        """
        sizes = np.asarray(lengths, dtype=np.int64)
        starts = np.repeat(sizes.cumsum() - sizes, sizes)
        positions = torch.from_numpy(np.arange(len(starts)) - starts)
        return cls(tuple(lengths), positions.to(device or "cpu"), sees)

    @property
    def rows(self) -> int:
        """T, the number of rows."""
        return sum(self.lengths)

    @property
    def longest(self) -> int:
        """M, the length of the longest text, 0 without texts."""
        return max(self.lengths, default=0)

    @property
    def starts(self) -> tuple[int, ...]:
        """The first row of each text, B of them."""
        return tuple(accumulate(self.lengths[:-1], initial=0)) if self.lengths else ()

    def to(self, device: torch.device | str) -> Layout:
        """The same on a device."""
        positions = self.positions.to(device, non_blocking=True)
        return Layout(self.lengths, positions, self.sees.to(device))

    def to_padded(self, rows: Tensor, mask: Tensor | None = None) -> Tensor:
        """Rows (T, ...) as a padded batch (B, M, ...), zeros where there is no token.

        With the attention mask (B, L) that `Inputs.padded` was given, each row returns to the
        place it came from: (B, L, ...), padding on either side.
        """
        inside = real(self.lengths, device=rows.device) if mask is None else mask.bool()
        if inside.sum(1).tolist() != list(self.lengths):
            raise TextError(
                f"the mask has {inside.sum(1).tolist()} tokens per text, the batch {self.lengths}"
            )
        padded = rows.new_zeros(*inside.shape, *rows.shape[1:])
        padded[inside] = rows
        return padded


def real(lengths: Sequence[int], *, device: torch.device | str | None = None) -> Tensor:
    """Which entries of a padded (B, M) batch hold a token, M = max(lengths)."""
    sizes = torch.tensor(lengths, dtype=torch.long, device=device)
    places = torch.arange(max(lengths, default=0), device=device)
    return places < sizes[:, None]


def visibility(sees: Sees, lengths: Sequence[int]) -> Tensor:
    """The visibility of whole texts as a matrix, False outside of them: -> (B, M, M)."""
    inside = real(lengths)
    places = torch.arange(inside.shape[1]).expand(inside.shape)
    square = inside[:, :, None] & inside[:, None, :]
    mask = sees.mask(places, inside.shape[1], first=0)
    return square if mask is None else square & mask


def picture(visible: Tensor) -> list[str]:
    """One text's visibility as lines of `#` (sees) and `.`: (1, M, M) or (M, M) -> M lines."""
    square = visible.reshape(visible.shape[-2:])
    return ["".join("#" if sees else "." for sees in line) for line in square.tolist()]
