"""What changes the scores of the next token before one is chosen, in the order of transformers 5.

Repetition penalty, n-grams, forbidden words, the least length, forced tokens, suppressed tokens.
Beams give log-probabilities, greedy search and sampling raw logits: the same penalty then differs.
"""

from __future__ import annotations

import torch
from torch import Tensor

from bertsmith.runtime.generation.live_rows import NOTHING, LiveRows, tails
from bertsmith.runtime.generation.options import WritingPlan

NEVER = float("-inf")


class Processors:
    """The processors of a plan; `tokens` of the `vocab_size` columns of scores are real tokens."""

    def __init__(self, plan: WritingPlan, vocab_size: int, tokens: int) -> None:
        self._plan = plan
        self._ends = torch.tensor(plan.ends, dtype=torch.long)
        self._forbidden = _mask([word[0] for word in plan.forbidden if len(word) == 1], vocab_size)
        if self._forbidden is not None:
            self._forbidden[self._ends] = False  # a text must be able to end
        self._words = _words([word for word in plan.forbidden if len(word) > 1])
        self._suppressed = _mask([*plan.suppressed, *range(tokens, vocab_size)], vocab_size)
        self._first_suppressed = _mask(plan.first_suppressed, vocab_size)
        self.needs_history = bool(
            plan.no_repeat or plan.repetition_penalty != 1.0 or self._words is not None
        )

    def active(self, rows: LiveRows) -> bool:
        """Whether anything may change for these rows."""
        plan = self._plan
        always = (self._forbidden, self._suppressed, self._first_suppressed, plan.first, plan.last)
        has_least = bool(plan.min_new or plan.min_length)
        return (
            self.needs_history
            or any(one is not None for one in always)
            or (has_least and bool((rows.written < rows.least).any()))
        )

    def __call__(self, scores: Tensor, rows: LiveRows) -> Tensor:
        """Change scores (R, V) in place."""
        plan = self._plan
        if plan.repetition_penalty != 1.0:
            _penalize(scores, rows, plan.repetition_penalty)
        if plan.no_repeat:
            _forbid_ngrams(scores, rows, plan.no_repeat)
        if self._forbidden is not None:
            scores.masked_fill_(self._forbidden, NEVER)
        if self._words is not None:
            _forbid_words(scores, rows, *self._words)
        if len(self._ends):
            short = (rows.written < rows.least).nonzero()[:, 0]
            if len(short):
                scores[short[:, None], self._ends] = NEVER
        if plan.first is not None:
            _force(scores, rows.written == 0, plan.first)
        if plan.last is not None:
            _force(scores, rows.written == rows.limits - 1, plan.last)
        if self._suppressed is not None:
            scores.masked_fill_(self._suppressed, NEVER)
        if self._first_suppressed is not None:
            # The first token that is free: a forced one comes before it.
            at = 0 if plan.first is None else 1
            scores.masked_fill_((rows.written == at)[:, None] & self._first_suppressed, NEVER)
        return scores


def _mask(ids: list[int] | tuple[int, ...], vocab_size: int) -> Tensor | None:
    if not ids:
        return None
    mask = torch.zeros(vocab_size, dtype=torch.bool)
    mask[list(ids)] = True
    return mask


def _words(words: list[tuple[int, ...]]) -> tuple[Tensor, Tensor] | None:
    """The tokens before the last of each word (W, n), NOTHING in front, and the last ones (W,)."""
    if not words:
        return None
    longest = max(map(len, words)) - 1
    before = [[NOTHING] * (longest + 1 - len(word)) + list(word[:-1]) for word in words]
    return torch.tensor(before), torch.tensor([word[-1] for word in words])


def _penalize(scores: Tensor, rows: LiveRows, penalty: float) -> None:
    """Tokens that stand in a row: negative scores times the penalty, others divided by it."""
    there = rows.tokens.clamp(min=0)
    old = scores.gather(1, there)
    new = torch.where(old < 0, old * penalty, old / penalty)
    # Places without a token must not write: they repeat what another place of the row writes.
    at_least_one = rows.lengths[:, None] > 0
    first = rows.tokens[:, :1].clamp(min=0)
    empty = rows.tokens == NOTHING
    there = torch.where(empty, first, there)
    new = torch.where(empty, new[:, :1], new)
    scores.scatter_(1, there, torch.where(at_least_one, new, scores.gather(1, there)))


def _forbid_ngrams(scores: Tensor, rows: LiveRows, size: int) -> None:
    """No token that would complete n tokens that stand in the row already."""
    last = tails(rows, size - 1) if size > 1 else rows.tokens[:, :0]
    width = rows.tokens.shape[1] - size + 1
    if width < 1:
        return
    after = rows.tokens[:, size - 1 :]  # (R, width): the token after each n - 1 others
    there = after != NOTHING
    for place in range(size - 1):
        there &= rows.tokens[:, place : place + width] == last[:, place : place + 1]
    at, where = there.nonzero(as_tuple=True)
    if len(at):
        scores[at, after[at, where]] = NEVER


def _forbid_words(scores: Tensor, rows: LiveRows, before: Tensor, last: Tensor) -> None:
    """No last token of a word whose others are the newest tokens of a row."""
    newest = tails(rows, before.shape[1])[:, None]  # (R, 1, n)
    there = ((newest == before) | (before == NOTHING)).all(dim=-1)  # (R, W)
    at, word = there.nonzero(as_tuple=True)
    if len(at):
        scores[at, last[word]] = NEVER


def _force(scores: Tensor, where: Tensor, token: int) -> None:
    """Nothing but this token, in some rows."""
    rows = where.nonzero()[:, 0]
    if len(rows):
        scores[rows] = NEVER
        scores[rows, token] = 0.0
