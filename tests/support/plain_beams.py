"""Beam search in plain Python, by the rules of transformers 5: the second oracle of beams."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from bertsmith.runtime.generation.options import WritingPlan

FAR = -1.0e9
Found = list[tuple[float, tuple[int, ...]]]
"""Scores and new tokens, best first."""


def processed(
    scores: list[float], plan: WritingPlan, before: Sequence[int], new: Sequence[int]
) -> None:
    """Every processor of a plan on the scores of one row, in place."""
    history = [*before, *new]
    if plan.repetition_penalty != 1.0:
        for token in set(history):
            old = scores[token]
            scores[token] = (
                old * plan.repetition_penalty if old < 0 else old / plan.repetition_penalty
            )
    size = plan.no_repeat
    if size and len(history) + 1 >= size:
        last = history[len(history) - size + 1 :]
        for at in range(len(history) - size + 1):
            if history[at : at + size - 1] == last:
                scores[history[at + size - 1]] = -math.inf
    for word in plan.forbidden:
        if len(word) == 1 and word[0] in plan.ends:
            continue
        if len(word) == 1 or tuple(history[-len(word) + 1 :]) == word[:-1]:
            scores[word[-1]] = -math.inf
    if len(new) < plan.least(len(before)):
        for end in plan.ends:
            scores[end] = -math.inf
    for token, here in ((plan.first, 0), (plan.last, plan.limit(len(before)) - 1)):
        if token is not None and len(new) == here:
            scores[:] = [-math.inf] * len(scores)
            scores[token] = 0.0
    for token in plan.suppressed:
        scores[token] = -math.inf


def plain_beams(
    logits: Callable[[Sequence[int]], Tensor], plan: WritingPlan, before: Sequence[int]
) -> Found:
    """The answers of one text; `logits` gives (V,) after some new tokens."""
    beams, limit, penalty = plan.beams, plan.limit(len(before)), plan.length_penalty
    running: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    finished: Found = []
    while True:
        candidates = []
        for total, new in running:
            scores = torch.log_softmax(logits(new), dim=0).tolist()
            processed(scores, plan, before, new)
            candidates += [(total + score, (*new, token)) for token, score in enumerate(scores)]
        candidates.sort(key=lambda one: -one[0])
        best = candidates[: max(2, 1 + len(plan.ends)) * beams]
        length = len(best[0][1])
        over = length >= limit
        for rank, (total, new) in enumerate(best):
            if rank < beams and (over or new[-1] in plan.ends):
                finished.append((total / length**penalty, new))
        finished = sorted(finished, key=lambda one: -one[0])[:beams]
        running = [one for one in best if one[1][-1] not in plan.ends][:beams]
        full = len(finished) == beams
        hoped = limit if plan.stop == "never" and penalty > 0 else length
        beaten = full and running[0][0] / hoped**penalty <= finished[-1][0]
        if over or beaten or (full and plan.stop == "early"):
            return finished[: plan.answers]
