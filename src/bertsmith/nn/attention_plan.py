"""How attention sees the rows of a batch: which texts share a rectangle, what in it is padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bertsmith.nn.layout import Causal, Full, Layout
from bertsmith.nn.positions import clipped, sinusoids

# How many padded places a text may bring into a shared rectangle. On a CPU a call costs less than
# copying rows into a rectangle and back, so only equal lengths share one (measured: 1.3 to 1.7
# times faster where lengths repeat); elsewhere a launch costs more than some padding.
SPARE = {"cpu": 0}
SPARE_ELSEWHERE = 24


@dataclass(frozen=True, slots=True)
class Side:
    """Rows of a group as a (texts, width) rectangle; `index` is None when no place is padding."""

    start: int
    count: int
    texts: int
    width: int
    index: Tensor | None  # (texts, width) row of each place, padding repeats a real row
    back: Tensor | None  # (count,) place of each row in the flat rectangle

    def spread(self, rows: Tensor) -> Tensor:
        """(R, ...) -> (texts, width, ...), a view when nothing is padded."""
        return self.arranged(rows[self.start : self.start + self.count])

    def arranged(self, part: Tensor) -> Tensor:
        """(count, ...), this side's own rows -> (texts, width, ...)."""
        picked = part if self.index is None else part.index_select(0, self.index.flatten())
        return picked.view(self.texts, self.width, *part.shape[1:])

    def gather(self, places: Tensor) -> Tensor:
        """(texts, width, ...) -> (count, ...)."""
        flat = places.flatten(0, 1)
        return flat if self.back is None else flat.index_select(0, self.back)


@dataclass(frozen=True, slots=True)
class Group:
    """Neighboring texts whose attention is computed in one call."""

    first: int  # number of the group's first text
    queries: Side
    keys: Side
    visible: Tensor | None = None  # (b, 1, l or 1, m), every row sees something
    blind: Tensor | None = None  # (b, 1, l, 1): queries that may look at nothing
    near: Tensor | None = None  # (b, 1, l, m) row of the distance table
    causal: bool = False  # each query sees the keys up to its own, `visible` is None


@dataclass(frozen=True, slots=True)
class Regrouping:
    """The groups of a batch; `rows` (P,) are the query rows in text order, None for all rows."""

    groups: tuple[Group, ...]
    texts: int
    longest: int
    rows: Tensor | None = None
    restore: Tensor | None = None  # (P,) undoes the sorting of `rows` by text
    distances: Tensor | None = None  # (2 clip + 1, K)


def spread_all(rows: Tensor, sides: Sequence[Side]) -> list[Tensor]:
    """(R, ...) -> (texts, width, ...) of each side; sides are disjoint and in the order of rows.

    The same as `spread` one by one, but cut in one go: the gradient of a slice is as large as
    all rows, and with many groups adding those up cost a fifth of a training step.
    """
    sizes, ends = [], 0
    for side in sides:
        sizes += [side.start - ends, side.count]  # what stands before it, often nothing
        ends = side.start + side.count
    parts = torch.split(rows, [*sizes, rows.shape[0] - ends])
    return [side.arranged(part) for side, part in zip(sides, parts[1::2], strict=True)]


def regroup(
    layout: Layout,
    *,
    rows: Tensor | None = None,
    clip: int | None = None,
    head_width: int = 0,
    dtype: torch.dtype | None = None,
) -> Regrouping:
    """Arrange a batch for attention, with `clip` for functional relative positions."""
    device = layout.positions.device
    restore = places = None
    counts: Sequence[int] = layout.lengths
    positions = layout.positions
    if rows is not None:
        sizes = torch.tensor(layout.lengths, dtype=torch.long, device=device)
        texts = torch.arange(len(sizes), device=device).repeat_interleave(sizes)[rows]
        order = texts.argsort(stable=True)
        rows, texts, restore = rows[order], texts[order], order.argsort()
        counts = texts.bincount(minlength=len(sizes)).tolist()
        places = rows - (sizes.cumsum(0) - sizes)[texts]
        positions = positions[rows]
    groups = []
    key_start = query_start = 0
    for first, last in bundles(layout.lengths, SPARE.get(device.type, SPARE_ELSEWHERE)):
        keys = _side(layout.lengths[first:last], key_start, device)
        queries = keys if rows is None else _side(counts[first:last], query_start, device)
        key_start += keys.count
        query_start += queries.count
        if not queries.count:
            continue
        visible, blind, causal = _visibility(layout, first, queries, keys, places)
        near = None
        if clip is not None:
            near = clipped(keys.spread(layout.positions), queries.spread(positions), clip)[:, None]
        groups.append(Group(first, queries, keys, visible, blind, near, causal))
    table = None if clip is None else sinusoids(clip, head_width, device=device, dtype=dtype)
    longest = max(layout.lengths, default=0)
    return Regrouping(tuple(groups), len(layout.lengths), longest, rows, restore, table)


def bundles(lengths: Sequence[int], padding: int) -> list[tuple[int, int]]:
    """Runs [first, last) of neighboring texts that share a rectangle; empty texts are in none."""
    runs: list[tuple[int, int]] = []
    first, width, tokens = 0, 0, 0
    for number, length in enumerate(lengths):
        if not length:
            if width:
                runs.append((first, number))
            first, width, tokens = number + 1, 0, 0
            continue
        wide = max(width, length)
        texts = number - first + 1
        spare = wide * texts - tokens - length
        if width and spare > padding * (texts - 1):
            runs.append((first, number))
            first, wide, tokens = number, length, 0
        width, tokens = wide, tokens + length
    if width:
        runs.append((first, len(lengths)))
    return runs


def _side(lengths: Sequence[int], start: int, device: torch.device) -> Side:
    count, texts, width = sum(lengths), len(lengths), max(lengths)
    if count == texts * width:
        return Side(start, count, texts, width, None, None)
    sizes = torch.tensor(lengths, dtype=torch.long)
    places = torch.arange(width)
    starts = sizes.cumsum(0) - sizes
    index = starts[:, None] + places.clamp(max=(sizes - 1).clamp(min=0)[:, None])
    index = index.clamp(max=max(count - 1, 0))
    back = (places < sizes[:, None]).flatten().nonzero().flatten()
    return Side(start, count, texts, width, index.to(device), back.to(device))


def _visibility(
    layout: Layout, first: int, queries: Side, keys: Side, places: Tensor | None
) -> tuple[Tensor | None, Tensor | None, bool]:
    """The mask of a group, its blind queries, and whether plain causal attention does without.

    No mask when all rows see all places.
    """
    sees = layout.sees
    if isinstance(sees, Causal) and keys.index is None and places is None:
        return None, None, True
    device = layout.positions.device
    inside = None
    if keys.index is not None:
        sizes = torch.tensor(layout.lengths[first : first + keys.texts], dtype=torch.long)
        inside = (torch.arange(keys.width) < sizes[:, None]).to(device)
        inside = inside[:, None, None, :]  # (b, 1, 1, m)
    if isinstance(sees, Full):
        return inside, None, False
    if places is None:
        at = torch.arange(queries.width, device=device).expand(queries.texts, -1)
    else:
        at = queries.spread(places)
    visible = sees.mask(at, keys.width, first=first)[:, None]
    visible = visible if inside is None else visible & inside  # (b, 1, l, m)
    blind = ~visible.any(-1, keepdim=True)
    if not bool(blind.any()):
        return visible, None, False
    return visible | blind, blind, False
