"""Search: what the ways to choose tokens (greedy, sampling, beams) have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn, Protocol

import torch
from torch import Tensor

from bertsmith.errors import ConfigError
from bertsmith.runtime.generation.live_rows import TextJob
from bertsmith.runtime.generation.options import Stopped, WritingPlan
from bertsmith.runtime.host import not_finite

BLOCK = 64  # columns whose largest value is looked at first by `largest`


@dataclass(frozen=True, slots=True)
class Written:
    """New tokens of a text, with the one that ended it; their score and why they stopped."""

    ids: tuple[int, ...]
    score: float
    stopped: Stopped


@dataclass(frozen=True, slots=True)
class Advance:
    """One step of a search.

    `tokens` (R,) are the newest ones of the rows that continue; `kept` (R,) are those rows among
    the rows before, None if they are the same; `finished` has jobs with all their answers.
    """

    tokens: Tensor
    kept: Tensor | None
    finished: Sequence[tuple[TextJob, list[Written]]]


class Search(Protocol):
    """Chooses tokens for live rows; `rows_per_text` of them belong to each text."""

    rows_per_text: int

    def enter(self, jobs: Sequence[TextJob]) -> None:
        """Add texts behind the live ones; the next logits have rows for them."""
        ...

    def advance(self, logits: Tensor) -> Advance:
        """Choose the next token of every live row by its logits (R, V), which may be changed."""
        ...


def is_end(tokens: Tensor, ends: Sequence[int]) -> Tensor:
    """Whether each token ends a text."""
    found = torch.zeros_like(tokens, dtype=torch.bool)
    for end in ends:
        found |= tokens == end
    return found


def why(job: TextJob, tokens: Sequence[int], plan: WritingPlan) -> Stopped:
    """Why a text of these new tokens stopped; a token forced at the limit is no end."""
    if tokens[-1] in plan.ends and (len(tokens) < job.most or plan.last is None):
        return "end"
    return "length" if job.most == job.limit else "positions"


def largest(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` largest scores of each row and their columns: (R, V) -> (R, count) twice.

    Where a row is wide, only the blocks of columns with the largest values are sorted.
    """
    rows, width = scores.shape
    blocks = width // BLOCK
    if blocks < 4 * count:
        best = scores.topk(min(count, width))
        return best.values, best.indices
    whole = scores[:, : blocks * BLOCK].view(rows, blocks, BLOCK)
    chosen = whole.amax(dim=2).topk(count).indices  # (R, count)
    inside = whole.gather(1, chosen[:, :, None].expand(-1, -1, BLOCK)).view(rows, -1)
    columns = (chosen[:, :, None] * BLOCK + torch.arange(BLOCK)).view(rows, -1)
    rest = scores[:, blocks * BLOCK :]
    if rest.shape[1]:
        inside = torch.cat([inside, rest], dim=1)
        columns = torch.cat([columns, torch.arange(blocks * BLOCK, width).expand(rows, -1)], dim=1)
    best = inside.topk(count)
    return best.values, columns.gather(1, best.indices)


def refuse(scores: Tensor, jobs: Sequence[TextJob], places: Sequence[int]) -> NoReturn:
    """The error for the first row whose best score is not finite; `places` are rows' jobs."""
    bad = int((~scores.isfinite()).nonzero()[0, 0])
    job = jobs[places[bad]]
    if scores[bad] == float("-inf"):
        raise ConfigError(
            f"{job.place}: every token is forbidden by the options (no_repeat, forbid, min_new and "
            "the like); relax one of them"
        )
    raise not_finite(job.place)
