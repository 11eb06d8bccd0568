"""Noise: what is done to a text before a model restores it, and where each token came from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from bertsmith.config import Settings
from bertsmith.corpus.rows import Flags, Ints, Longs, RowsBatch
from bertsmith.errors import ConfigError
from bertsmith.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Noised:
    """Texts after a noise: `ids` (N,) and `lengths` (B,), one text after another.

    `origin` (N,) is the row that each token was before, -1 for a mask that was put in. `near` (N,)
    is the same; for a mask it is the first row it stands for or, where it stands for nothing, the
    row it was put before.
    """

    ids: Ints
    lengths: tuple[int, ...]
    origin: Longs
    near: Longs

    def rows(self, before: RowsBatch) -> RowsBatch:
        """The texts as the next noise reads them; a mask is a word of its own."""
        masks = np.flatnonzero(self.origin < 0)
        words = before.words[self.near]
        words[masks] = before.words.max(initial=0) + 1 + np.arange(len(masks), dtype=np.int32)
        near = self.near
        return replace(
            before,
            ids=self.ids,
            segments=before.segments[near],
            words=words,
            lengths=self.lengths,
            channels={name: part[near] for name, part in before.channels.items()},
            positions=None,
            sees=None,
            sentences=None if before.sentences is None else before.sentences[near],
        )

    def after(self, earlier: Noised) -> Noised:
        """The same, with origins before an earlier noise."""
        origin = np.where(self.origin < 0, -1, earlier.origin[self.near])
        return replace(self, origin=origin, near=earlier.near[self.near])


Noise = Callable[[RowsBatch], Noised]


def arranged(rows: RowsBatch, near: Longs, masks: Flags, mask_id: int = -1) -> Noised:
    """Rows `near` (N,) of a batch in this order, `mask_id` where `masks` (N,) is True."""
    counts = np.bincount(rows.texts[near], minlength=len(rows.lengths))
    return Noised(
        ids=np.where(masks, mask_id, rows.ids[near]).astype(np.int32),
        lengths=tuple(counts.tolist()),
        origin=np.where(masks, -1, near),
        near=near,
    )


def hide(rows: RowsBatch, drop: Flags, at: Longs, mask_id: int) -> Noised:
    """Rows without those of `drop` (T,), and a mask before each row of `at`.

    A text that would lose every token keeps its first.
    """
    left = np.bincount(rows.texts[~drop], minlength=len(rows.lengths))
    left += np.bincount(rows.texts[at], minlength=len(rows.lengths))
    empty = (left == 0) & (rows.sizes > 0)
    kept = ~drop
    kept[rows.starts[empty]] = True
    shown = np.flatnonzero(kept)
    near = np.concatenate([at, shown])
    masks = np.arange(len(near)) < len(at)
    order = np.argsort(near, kind="stable")  # masks stand first here, so before their row
    return arranged(rows, near[order], masks[order], mask_id)


class NoiseSettings(Settings):
    """The settings of a noise; `rate` is the share of words, tokens, sentences or texts changed."""

    kind: str
    rate: float

    @property
    def changes(self) -> str:
        """What `rate` is a share of."""
        return "words"

    def make(self, tokenizer: Tokenizer, stream: str) -> Noise:
        """The noise itself; `stream` names its random numbers."""
        raise ConfigError(f"the noise {self.kind!r} has no `make`")


def mask_of(tokenizer: Tokenizer, kind: str) -> int:
    """The mask token of a vocabulary that must have one."""
    if tokenizer.special.mask is None:
        raise ConfigError(
            f"this vocabulary has no mask token, which the noise {kind} puts in; take deletion, "
            "permutation or rotation, or another vocabulary"
        )
    return tokenizer.special.mask
