"""Groups packed sequences into (padded) attention calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bertsmith.errors import TextError
from bertsmith.nn.layout import AfterMemory, Causal, Dense, Full, Layout, Ordered, Sees
from bertsmith.nn.positions import PositionTerms, TermsOf

# How many padded places a text may bring into a shared grid. On a CPU a call costs less than
# copying rows into a grid and back, so only equal lengths share one (measured: 1.3 to 1.7 times
# faster where lengths repeat); elsewhere a launch costs more than some padding.
SPARE = {"cpu": 0}
SPARE_ELSEWHERE = 24


@dataclass(frozen=True, slots=True)
class Grid:
    """Rows of a group as a (texts, width) grid; `index` is None when no place is padding."""

    start: int
    count: int
    texts: int
    width: int
    index: Tensor | None  # (texts, width) row of each place, padding repeats a real row
    back: Tensor | None  # (count,) place of each row in the flat grid

    def pad(self, rows: Tensor) -> Tensor:
        """(R, ...) -> (texts, width, ...), a view when nothing is padded."""
        return self.pad_own(rows[self.start : self.start + self.count])

    def pad_own(self, part: Tensor) -> Tensor:
        """(count, ...), the rows of this grid alone -> (texts, width, ...)."""
        picked = part if self.index is None else part.index_select(0, self.index.flatten())
        return picked.view(self.texts, self.width, *part.shape[1:])

    def pack(self, places: Tensor) -> Tensor:
        """(texts, width, ...) -> (count, ...)."""
        flat = places.flatten(0, 1)
        return flat if self.back is None else flat.index_select(0, self.back)


@dataclass(frozen=True, slots=True)
class Group:
    """Neighboring texts whose attention is computed in one call."""

    first: int  # number of the group's first text
    queries: Grid
    keys: Grid
    visible: Tensor | None = None  # (b, 1, l or 1, m), every row sees something
    blind: Tensor | None = None  # (b, 1, l, 1): queries that may look at nothing
    causal: bool = False  # each query sees the keys up to its own, `visible` is None
    terms: PositionTerms | None = None


@dataclass(frozen=True, slots=True)
class AttentionPlan:
    """The groups of a batch; `rows` (P,) are the query rows in text order, None for all rows."""

    groups: tuple[Group, ...]
    shape: tuple[int, int, int]  # texts, longest text of the queries, longest of the keys
    rows: Tensor | None = None
    restore: Tensor | None = None  # (P,) undoes the sorting of `rows` by text
    cross: bool = False  # keys and values come from other rows than the queries


def pad_all(rows: Tensor, grids: Sequence[Grid]) -> list[Tensor]:
    """(R, ...) -> (texts, width, ...) of each grid; grids are disjoint and in the order of rows.

    The same as `pad` one by one, but cut in one go: the gradient of a slice is as large as
    all rows, and with many groups adding those up cost a fifth of a training step.
    """
    sizes, ends = [], 0
    for grid in grids:
        sizes += [grid.start - ends, grid.count]  # what stands before it, often nothing
        ends = grid.start + grid.count
    parts = torch.split(rows, [*sizes, rows.shape[0] - ends])
    return [grid.pad_own(part) for grid, part in zip(grids, parts[1::2], strict=True)]


def attention_plan(
    queries: Layout,
    keys: Layout | None = None,
    *,
    rows: Tensor | None = None,
    sees: Sees | None = None,
    terms: TermsOf | None = None,
) -> AttentionPlan:
    """How rows attend to rows of the same text.

    Without `keys`, self-attention over one layout, of all its rows or of `rows` (P,) only. With
    `keys`, text b of the queries, of which `rows` may be some, attends to text b of the keys, as
    `sees` says (default: to all).
    `terms` are positions inside attention.
    """
    looked_at = queries if keys is None else keys
    sees = sees or (queries.sees if keys is None else Full())
    counts, positions, places, restore = queries.lengths, queries.positions, None, None
    if rows is not None:
        rows, restore, counts, places = _chosen(queries, rows)
        positions = positions[rows]
    _check(counts, looked_at)
    device = positions.device
    groups = []
    key_start = query_start = 0
    for first, last in bundles(looked_at.lengths, SPARE.get(device.type, SPARE_ELSEWHERE)):
        there = grid_of(looked_at.lengths[first:last], key_start, device)
        alone = keys is None and rows is None
        here = there if alone else grid_of(counts[first:last], query_start, device)
        key_start += there.count
        query_start += here.count
        if not here.count:
            continue
        mask = _visibility(sees, first, here, there, places, looked_at)
        own = None if terms is None else terms(here.pad(positions), there.pad(looked_at.positions))
        groups.append(Group(first, here, there, *mask, own))
    shape = (len(looked_at.lengths), queries.longest, looked_at.longest)
    return AttentionPlan(tuple(groups), shape, rows, restore, keys is not None)


def bundles(lengths: Sequence[int], padding: int) -> list[tuple[int, int]]:
    """Runs [first, last) of neighboring texts that share a grid; empty texts are in none."""
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


def _chosen(layout: Layout, rows: Tensor) -> tuple[Tensor, Tensor, tuple[int, ...], Tensor]:
    """Rows in text order, what undoes the sorting, how many of each text, places in their text."""
    device = layout.positions.device
    sizes = torch.tensor(layout.lengths, dtype=torch.long, device=device)
    texts = torch.arange(len(sizes), device=device).repeat_interleave(sizes)[rows]
    order = texts.argsort(stable=True)
    rows, texts = rows[order], texts[order]
    counts = tuple(texts.bincount(minlength=len(sizes)).tolist())
    return rows, order.argsort(), counts, rows - (sizes.cumsum(0) - sizes)[texts]


def _check(counts: Sequence[int], keys: Layout) -> None:
    if len(counts) != len(keys.lengths):
        raise TextError(f"{len(counts)} texts attend to {len(keys.lengths)}: give one per text")
    for text, (asking, length) in enumerate(zip(counts, keys.lengths, strict=True)):
        if asking and not length:
            raise TextError(f"text {text} has {asking} rows that attend, and none to attend to")


def grid_of(lengths: Sequence[int], start: int, device: torch.device) -> Grid:
    """The grid of texts of these lengths whose rows begin at `start`."""
    count, texts, width = sum(lengths), len(lengths), max(lengths)
    if count == texts * width:
        return Grid(start, count, texts, width, None, None)
    sizes = torch.tensor(lengths, dtype=torch.long)
    places = torch.arange(width)
    starts = sizes.cumsum(0) - sizes
    index = starts[:, None] + places.clamp(max=(sizes - 1).clamp(min=0)[:, None])
    index = index.clamp(max=max(count - 1, 0))
    back = (places < sizes[:, None]).flatten().nonzero().flatten()
    return Grid(start, count, texts, width, index.to(device), back.to(device))


def _visibility(
    sees: Sees, first: int, queries: Grid, keys: Grid, places: Tensor | None, looked_at: Layout
) -> tuple[Tensor | None, Tensor | None, bool]:
    """The mask of a group, its blind queries, and whether plain causal attention does without.

    No mask when all rows see all places.
    """
    whole = places is None and keys.index is None and queries.width == keys.width
    if isinstance(sees, Causal) and whole:
        return None, None, True
    device = looked_at.positions.device
    inside = None
    if keys.index is not None:
        lengths = looked_at.lengths[first : first + keys.texts]
        inside = (torch.arange(keys.width) < torch.tensor(lengths)[:, None]).to(device)
        inside = inside[:, None, None, :]  # (b, 1, 1, m)
    if isinstance(sees, Full):
        return inside, None, False
    if places is None:
        at = torch.arange(queries.width, device=device).expand(queries.texts, -1)
    else:
        at = queries.pad(places)
    visible = sees.mask(at, keys.width, first=first)[:, None]
    visible = visible if inside is None else visible & inside  # (b, 1, l, m)
    if not isinstance(sees, Dense | Ordered | AfterMemory):
        return visible, None, False  # a row sees at least itself
    blind = ~visible.any(-1, keepdim=True)
    if not bool(blind.any()):
        return visible, None, False
    return visible | blind, blind, False
