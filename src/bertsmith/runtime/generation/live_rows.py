"""LiveRows: the texts under way, as rows of tokens that processors and searches read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

NOTHING = -1  # in places of `tokens` that hold no token


@dataclass(frozen=True, slots=True, kw_only=True)
class TextJob:
    """One text to write: its number in the call, its source, and how much may be written.

    `place` names it in errors; `key` identifies its content. `before` are the tokens that count as
    written before the first new one; `limit` the most new tokens, `room` those that the positions
    hold (None: any number), `least` the fewest.
    """

    number: int
    place: str
    ids: np.ndarray[tuple[int], np.dtype[np.int64]]
    key: int
    before: tuple[int, ...]
    limit: int
    room: int | None
    least: int

    @property
    def most(self) -> int:
        """The most new tokens, positions included."""
        return self.limit if self.room is None else min(self.limit, self.room)


class LiveRows:
    """R rows, some of them of one text: tokens so far, and how many more there may be.

    `tokens` (R, C): from the left what counts as written before, then the new tokens; `lengths`
    (R,) how many; `written` (R,) the new ones of them; `limits` and `least` (R,) of new tokens;
    `jobs` (R,) the place of each row's job in a list of the search.
    """

    def __init__(self) -> None:
        self.tokens = torch.empty(0, 0, dtype=torch.long)
        self.lengths = self.written = self.limits = torch.empty(0, dtype=torch.long)
        self.least = self.jobs = self.lengths
        self._longest = 0

    def __len__(self) -> int:
        return len(self.lengths)

    def enter(self, jobs: Sequence[TextJob], first: int, repeats: int, *, history: bool) -> None:
        """Add `repeats` rows for each job; the first job has the number `first`.

        Without `history` the tokens before the first new one are left out.
        """
        before = [job.before if history else () for job in jobs]
        longest = max(map(len, before), default=0)
        capacity = longest + min(256, max(job.most for job in jobs))
        tokens = np.full((len(jobs), capacity), NOTHING, dtype=np.int64)
        for row, ids in enumerate(before):
            tokens[row, : len(ids)] = ids
        self._grow(capacity)
        own = torch.from_numpy(tokens).repeat_interleave(repeats, dim=0)
        if own.shape[1] < self.tokens.shape[1]:
            own = _wider(own, self.tokens.shape[1])
        self.tokens = torch.cat([self.tokens, own])
        self._longest = max(self._longest, longest)
        for name, values in (
            ("lengths", [len(ids) for ids in before]),
            ("written", [0] * len(jobs)),
            ("limits", [job.most for job in jobs]),
            ("least", [job.least for job in jobs]),
            ("jobs", list(range(first, first + len(jobs)))),
        ):
            added = torch.tensor(values, dtype=torch.long).repeat_interleave(repeats)
            setattr(self, name, torch.cat([getattr(self, name), added]))

    def append(self, tokens: Tensor) -> None:
        """A new token for each row: (R,)."""
        if self._longest == self.tokens.shape[1]:
            self._grow(2 * self._longest + 1)
        self.tokens.scatter_(1, self.lengths[:, None], tokens[:, None])
        self.lengths = self.lengths + 1
        self.written = self.written + 1
        self._longest += 1

    def keep(self, rows: Tensor) -> None:
        """Continue with these rows, in this order; one may be named repeatedly."""
        self.tokens = self.tokens.index_select(0, rows)
        for name in ("lengths", "written", "limits", "least", "jobs"):
            setattr(self, name, getattr(self, name).index_select(0, rows))

    def new_tokens(self, row: int) -> list[int]:
        """The new tokens of a row."""
        end = int(self.lengths[row])
        return self.tokens[row, end - int(self.written[row]) : end].tolist()

    def _grow(self, capacity: int) -> None:
        if capacity > self.tokens.shape[1]:
            self.tokens = _wider(self.tokens, capacity)


def _wider(tokens: Tensor, capacity: int) -> Tensor:
    wider = tokens.new_full((len(tokens), capacity), NOTHING)
    wider[:, : tokens.shape[1]] = tokens
    return wider


def tails(rows: LiveRows, count: int) -> Tensor:
    """The last `count` tokens of each row (R, count); NOTHING before its first one."""
    places = rows.lengths[:, None] - torch.arange(count, 0, -1)
    return rows.tokens.gather(1, places.clamp(min=0)).masked_fill(places < 0, NOTHING)
