"""A linear-chain CRF (Lafferty et al. 2001): learned scores for which tag follows which."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from bertsmith.nn.loss import LossSum

# Encoders are tuned at rates near 1e-4. There, scores that begin at 0 go nowhere: a thousand steps
# of Adam add up to 0.05, when log odds between tags are of the order of 5.
FASTER = 100.0

Scores = tuple[Tensor, Tensor, Tensor]


class Crf(nn.Module):
    """Scores of the first tag, of each pair of neighbors, and of the last tag of a sequence.

    They begin at 0, where the loss is the cross entropy of every unit by itself. The weights hold
    them divided by FASTER.
    """

    def __init__(self, tags: int) -> None:
        super().__init__()
        self.start = nn.Parameter(torch.zeros(tags))
        self.between = nn.Parameter(torch.zeros(tags, tags))  # from (row) to (column)
        self.end = nn.Parameter(torch.zeros(tags))

    @property
    def tags(self) -> int:
        """C."""
        return self.start.shape[0]

    def scores(self) -> Scores:
        """Start (C,), between (C, C), end (C,): a step moves them FASTER times as far as weights.

        The gradient is that of the scores, so that clipping by its norm is not swayed.
        """
        start, between, end = (
            weight + (FASTER - 1) * weight.detach()
            for weight in (self.start, self.between, self.end)
        )
        return start, between, end

    def forward(self, logits: Tensor, targets: Tensor, sizes: Tensor) -> LossSum:
        """(U, C), (U,) of sequences of `sizes` (R,) units, one after another -> LossSum.

        The count is that of units, so that the mean compares with a cross entropy. Tags that may
        not follow each other are not left out: what was cut away can leave an I without its B.
        """
        if not targets.numel():
            return LossSum(logits.float().sum() + 0 * self.start.sum(), 0)
        logits = logits.float()
        firsts = sizes.cumsum(0) - sizes  # (R,)
        scores = self.scores()
        wanted = _score(scores, logits, targets, firsts, sizes)
        return LossSum(_log_sum(scores, logits, firsts, sizes) - wanted, targets.numel())


def _score(
    scores: Scores, logits: Tensor, targets: Tensor, firsts: Tensor, sizes: Tensor
) -> Tensor:
    """The score of the wanted tags of all sequences together."""
    start, between, end = scores
    joined = torch.ones(len(targets), dtype=torch.bool, device=targets.device)
    joined[firsts] = False
    places = joined.nonzero().squeeze(1)  # units with a neighbor before them
    return (
        logits.gather(1, targets[:, None]).sum()
        + start[targets[firsts]].sum()
        + between[targets[places - 1], targets[places]].sum()
        + end[targets[firsts + sizes - 1]].sum()
    )


def _log_sum(scores: Scores, logits: Tensor, firsts: Tensor, sizes: Tensor) -> Tensor:
    """The log of the summed weights of all paths, over all sequences (forward algorithm)."""
    start, between, end = scores
    steps = torch.arange(int(sizes.max()), device=logits.device)
    places = firsts[:, None] + steps.minimum(sizes[:, None] - 1)  # (R, S)
    real = steps < sizes[:, None]
    padded = logits[places]  # (R, S, C)
    reached = start + padded[:, 0]  # (R, C)
    for step in range(1, len(steps)):
        paths = reached[:, :, None] + between  # (R, C, C)
        ahead = paths.logsumexp(dim=1) + padded[:, step]
        reached = torch.where(real[:, step, None], ahead, reached)
    return (reached + end).logsumexp(dim=1).sum()
