"""Drawing tokens: temperature, top-k, top-p, and draws that depend on nothing but their text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from bertsmith.random_keys import Words, key_of, uniforms
from bertsmith.runtime.generation.live_rows import TextJob
from bertsmith.runtime.generation.options import WritingPlan
from bertsmith.runtime.generation.search import largest

HEAD = 256  # likeliest tokens among which top-p is looked for first


class Draws:
    """One number per row and step, from (seed, source, answer, step): no batch changes a draw."""

    def __init__(self, plan: WritingPlan) -> None:
        self._plan = plan
        self._keys: Words = np.empty(0, dtype=np.uint64)

    def enter(self, jobs: Sequence[TextJob], answers: int) -> None:
        """Add the answers of further texts."""
        keys = [
            key_of("generate", job.key, answer, seed=self._plan.seed)
            for job in jobs
            for answer in range(answers)
        ]
        self._keys = np.concatenate([self._keys, np.array(keys, dtype=np.uint64)])

    def keep(self, rows: Tensor) -> None:
        """Continue with these rows."""
        self._keys = self._keys[rows.numpy()]

    def __call__(self, scores: Tensor, steps: Tensor) -> Tensor:
        """A token of each row by its scores (R, V); `steps` (R,) counts the tokens before it."""
        ids, probabilities = filtered(scores, self._plan)
        numbers = torch.from_numpy(uniforms(self._keys, steps.numpy()))
        return ids.gather(1, inverse(probabilities, numbers)[:, None])[:, 0]


def filtered(scores: Tensor, plan: WritingPlan) -> tuple[Tensor, Tensor]:
    """What may be drawn: ids in rising order and their probabilities, (R, V) -> (R, K) twice.

    In the order of ids a row's numbers are cut the same way however close two scores are; in the
    order of scores a difference in the last bit would change the draw.
    """
    if plan.temperature != 1.0:
        scores = scores / plan.temperature
    ids = torch.arange(scores.shape[1]).expand(len(scores), -1)
    if 0 < plan.top_k < scores.shape[1]:
        scores, ids = largest(scores, plan.top_k)
        ids, order = ids.sort(dim=1)
        scores = _without_tail(scores, plan.top_p).gather(1, order)
    elif plan.top_p < 1.0:
        scores = _nucleus(scores, plan.top_p)
    return ids, scores.double().softmax(dim=1)


def _nucleus(scores: Tensor, top_p: float) -> Tensor:
    """Scores (R, V) without the tail, in their own order."""
    kept = torch.full_like(scores, float("-inf"))
    head, order = largest(scores, min(HEAD, scores.shape[1]))
    shares = (head - scores.logsumexp(dim=1, keepdim=True)).exp().cumsum(dim=1)
    if not (shares[:, -1] > top_p).all():  # flat rows: everything must be sorted
        head, order = scores.sort(dim=1, descending=True)
        return kept.scatter_(1, order, _without_tail(head, top_p))
    head = head.clone()
    head[:, 1:].masked_fill_(shares[:, :-1] >= top_p, float("-inf"))
    return kept.scatter_(1, order, head)


def _without_tail(ranked: Tensor, top_p: float) -> Tensor:
    """Scores in falling order, without those at the bottom that sum to at most 1 - `top_p`."""
    if top_p >= 1.0:
        return ranked
    below = ranked.softmax(dim=1).flip(1).cumsum(dim=1).flip(1)
    dropped = below <= 1.0 - top_p
    dropped[:, 0] = False
    return ranked.masked_fill(dropped, float("-inf"))


def inverse(probabilities: Tensor, numbers: Tensor) -> Tensor:
    """The place where the sum of probabilities (R, K) passes each number (R,) of [0, 1)."""
    sums = probabilities.cumsum(dim=1)
    total = sums[:, -1:]
    goal = torch.minimum(numbers[:, None] * total, torch.nextafter(total, total.new_zeros(())))
    return torch.searchsorted(sums, goal, right=True)[:, 0]
