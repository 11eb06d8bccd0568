"""Gradients of a step: the same however the batch is cut into micro-batches or over ranks."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from toy_training import ToyModel, ToyWork, toy_run

from bertsmith.errors import BertsmithError
from bertsmith.training.loop.run import Run
from bertsmith.training.loop.step import clip, compute_gradients, gradient_norm


def gradients(run: Run) -> list[Tensor]:
    run.model.zero_grad(set_to_none=True)
    compute_gradients(run, run.work.micro_batches(3, 0.0), step=3, rate=0.1)
    return [p.grad.clone() for p in run.model.parameters() if p.grad is not None]


def whole_by_hand(model: ToyModel, work: ToyWork) -> list[Tensor]:
    """One batch, each part divided by its own count, in float64."""
    exact = ToyModel(dropout=0.0).double()
    exact.load_state_dict(model.state_dict())
    (batch,) = replace(work, micro=1).micro_batches(3, 0.0)
    asked = batch.targets >= 0
    rows = exact(batch.ids)
    logits = rows[asked] @ exact.tokens.weight.T
    word = nn.functional.cross_entropy(logits, batch.targets[asked])
    first = rows.view(len(batch.labels), -1, rows.shape[-1])[:, 0]
    pair = nn.functional.cross_entropy(exact.pair(first), batch.labels)
    (word + 0.5 * pair).backward()
    return [p.grad for p in exact.parameters() if p.grad is not None]


@pytest.mark.parametrize("micro", [1, 2, 3, 6])
def test_accumulation_equals_one_large_batch_with_unequal_counts(
    micro: int, tmp_path: Path
) -> None:
    model, work = ToyModel(dropout=0.0), ToyWork(micro=micro)
    counts = {work.counts(batch)["word"] for batch in work.micro_batches(3, 0.0)}
    assert micro == 1 or len(counts) > 1
    free = toy_run(tmp_path, model=model, work=work)
    free = replace(free, optimizer=free.optimizer.model_copy(update={"clip": None}))
    for found, expected in zip(gradients(free), whole_by_hand(model, work), strict=True):
        assert float((found.double() - expected).norm() / expected.norm()) < 1e-6


@dataclass
class HalfRank:
    """One of two ranks, told beforehand what the other one counts."""

    rank: int
    other: dict[str, float]
    idle: int = 0
    world = 2
    is_first = False

    def passes(self, own: int) -> int:
        return own + self.idle

    def whole(self, model: nn.Module) -> nullcontext[None]:
        return nullcontext()

    def sum_counts(self, counts: Mapping[str, float]) -> dict[str, float]:
        return {name: value + self.other.get(name, 0.0) for name, value in counts.items()}

    def sum_gradients(self, model: nn.Module) -> None:
        """Added by the test."""

    def any(self, flag: bool) -> bool:
        return flag

    def barrier(self) -> None:
        """Nobody waits."""


class HalfWork(ToyWork):
    half = 0

    def micro_batches(self, step: int, share: float) -> list[Any]:
        return super().micro_batches(step, share)[self.half :: 2]


def test_two_ranks_add_up_to_one(tmp_path: Path) -> None:
    whole = toy_run(tmp_path, model=ToyModel(dropout=0.0), work=ToyWork(micro=6))
    whole = replace(whole, optimizer=whole.optimizer.model_copy(update={"clip": None}))
    expected = gradients(whole)
    works = [HalfWork(micro=6), HalfWork(micro=6)]
    works[1].half = 1
    counts = []
    for work in works:
        found = [work.counts(batch) for batch in work.micro_batches(3, 0.0)]
        counts.append({f"count:{n}": float(sum(c[n] for c in found)) for n in work.weights})
    halves = [
        gradients(replace(whole, work=works[i], ranks=HalfRank(i, counts[1 - i], idle=i)))
        for i in (0, 1)
    ]
    for one, two, target in zip(*halves, expected, strict=True):
        torch.testing.assert_close(one + two, target, rtol=1e-5, atol=1e-7)


def test_clipping_bounds_the_norm_of_all_gradients_together() -> None:
    model = ToyModel()
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    norm = gradient_norm(model)
    assert norm == pytest.approx(sum(p.numel() for p in model.parameters()) ** 0.5)
    clip(model, norm, 2 * norm)
    assert gradient_norm(model) == pytest.approx(norm)
    clip(model, norm, 0.5)
    assert gradient_norm(model) == pytest.approx(0.5)


def test_a_part_that_counts_otherwise_than_announced_is_an_error(tmp_path: Path) -> None:
    class Liar(ToyWork):
        def counts(self, batch: Any) -> dict[str, int]:
            return {**super().counts(batch), "word": 1_000}

    run = toy_run(tmp_path, work=Liar())
    with pytest.raises(BertsmithError, match="'word' announced 1000 predictions"):
        gradients(run)


def test_the_generator_of_a_step_depends_on_seed_step_and_rank_only(tmp_path: Path) -> None:
    run = toy_run(tmp_path)
    first = gradients(run)
    torch.randn(1000)
    again = gradients(run)
    other = gradients(replace(run, seed=12))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(first, other, strict=True))
