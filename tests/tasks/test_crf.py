"""The CRF's loss against every path written out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from bertsmith.nn.crf import FASTER, Crf

SIZES = [3, 1, 4, 2, 3]


def random_crf(tags: int, spread: float = 1.0) -> Crf:
    crf = Crf(tags)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in crf.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * spread / FASTER)
    return crf


def rows(tags: int, sizes: list[int], seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(sum(sizes), tags, generator=generator)
    targets = torch.randint(0, tags, (sum(sizes),), generator=generator)
    return logits.requires_grad_(), targets, torch.tensor(sizes)


def path_score(scores: Sequence[Tensor], logits: Tensor, path: list[int]) -> Tensor:
    start, between, end = scores
    score = start[path[0]] + end[path[-1]]
    for place, tag in enumerate(path):
        score = score + logits[place, tag]
    for before, after in pairwise(path):
        score = score + between[before, after]
    return score


def enumerated(
    scores: Sequence[Tensor], logits: Tensor, targets: Tensor, sizes: list[int]
) -> Tensor:
    total = torch.zeros(())
    for part, wanted in zip(logits.split(sizes), targets.split(sizes), strict=True):
        paths = product(range(logits.shape[1]), repeat=len(wanted))
        every = torch.stack([path_score(scores, part, list(path)) for path in paths])
        total = total + every.logsumexp(0) - path_score(scores, part, wanted.tolist())
    return total


@pytest.mark.parametrize("tags", [1, 2, 3])
def test_the_loss_and_every_gradient_equal_those_of_all_paths_written_out(tags: int) -> None:
    crf = random_crf(tags)
    logits, targets, sizes = rows(tags, SIZES)
    scores = [score.detach().requires_grad_() for score in crf.scores()]
    plain = enumerated(scores, logits, targets, SIZES)
    fast = crf(logits, targets, sizes)
    assert fast.count == sum(SIZES)
    torch.testing.assert_close(fast.sum, plain, rtol=1e-5, atol=1e-5)
    wanted = torch.autograd.grad(plain, [logits, *scores])
    found = torch.autograd.grad(fast.sum, [logits, crf.start, crf.between, crf.end])
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_a_new_crf_is_the_cross_entropy_of_every_unit() -> None:
    logits, targets, sizes = rows(5, SIZES)
    wanted = F.cross_entropy(logits, targets, reduction="sum")
    torch.testing.assert_close(Crf(5)(logits, targets, sizes).sum, wanted)


def test_a_step_at_the_rate_of_an_encoder_moves_the_scores() -> None:
    crf = Crf(3)
    logits, targets, sizes = rows(3, SIZES)
    optimizer = torch.optim.Adam(crf.parameters(), lr=1e-4)
    crf(logits, targets, sizes).sum.backward()
    optimizer.step()
    assert crf.scores()[1].abs().max().item() == pytest.approx(1e-4 * FASTER, rel=1e-3)


def test_neighbors_in_a_batch_change_nothing() -> None:
    crf = random_crf(4)
    logits, targets, sizes = rows(4, SIZES)
    alone = [
        crf(part, wanted, torch.tensor([len(wanted)])).sum
        for part, wanted in zip(logits.split(SIZES), targets.split(SIZES), strict=True)
    ]
    torch.testing.assert_close(crf(logits, targets, sizes).sum, torch.stack(alone).sum())


def test_large_scores_stay_finite() -> None:
    crf = random_crf(3, spread=1e3)
    logits, targets, sizes = rows(3, [30, 2])
    loss = crf(logits * 1e4, targets, sizes).sum
    loss.backward()
    assert torch.isfinite(loss)
    assert all(torch.isfinite(p.grad).all() for p in crf.parameters())
    half = crf(logits.detach().bfloat16(), targets, sizes).sum
    assert half.dtype == torch.float32


def test_no_units_cost_nothing() -> None:
    none = torch.zeros(0, dtype=torch.long)
    loss = Crf(3)(torch.zeros(0, 3), none, none)
    assert (loss.sum.item(), loss.count) == (0.0, 0)
    loss.sum.backward()
