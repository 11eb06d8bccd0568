"""Gradients of a step: the same however the batch is cut into micro-batches or over ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from toy_training import WORDS, ToyModel, ToyWork, final_state, toy_run

from bertsmith.errors import BertsmithError
from bertsmith.nn.loss import cross_entropy
from bertsmith.training.execution.execution import Execution
from bertsmith.training.execution.stop import StopSignals
from bertsmith.training.loop.loop import train
from bertsmith.training.loop.progress import Progress
from bertsmith.training.loop.run import Run
from bertsmith.training.loop.step import clip, compute_gradients, gradient_norm
from bertsmith.training.loop.workload import StepGradients
from bertsmith.training.optimizers.optimizers import AdamWSettings


def gradients(run: Run) -> list[Tensor]:
    run.model.zero_grad(set_to_none=True)
    compute_gradients(run, run.workload.micro_batches(3, 0.0), step=3, rate=0.1)
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
    free = toy_run(tmp_path, model=model, workload=work)
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
    whole = toy_run(tmp_path, model=ToyModel(dropout=0.0), workload=ToyWork(micro=6))
    whole = replace(whole, optimizer=whole.optimizer.model_copy(update={"clip": None}))
    expected = gradients(whole)
    works = [HalfWork(micro=6), HalfWork(micro=6)]
    works[1].half = 1
    counts = []
    for work in works:
        found = [work.counts(batch) for batch in work.micro_batches(3, 0.0)]
        counts.append({f"count:{n}": float(sum(c[n] for c in found)) for n in work.weights})
    halves = [
        gradients(
            replace(
                whole,
                workload=works[i],
                execution=Execution(ranks=HalfRank(i, counts[1 - i], idle=i)),
            )
        )
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

    run = toy_run(tmp_path, workload=Liar())
    with pytest.raises(BertsmithError, match="'word' announced 2000 predictions"):
        gradients(run)


def test_the_generator_of_a_step_depends_on_seed_step_and_rank_only(tmp_path: Path) -> None:
    run = toy_run(tmp_path)
    first = gradients(run)
    torch.randn(1000)
    again = gradients(run)
    other = gradients(replace(run, seed=12))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(first, other, strict=True))


@dataclass(frozen=True)
class Pairs:
    """Words (B,) and their partners (B,), the same rows of both belonging together."""

    words: Tensor
    partners: Tensor

    def to(self, device: torch.device) -> Pairs:
        return self


class ContrastiveWork(ToyWork):
    """In-batch contrast: every other partner of the whole batch is a negative of a word.

    The loss of one micro-batch needs the vectors of all of them. Their gradients are cached first,
    then each micro-batch is encoded again and takes its part (GradCache, Gao et al. 2021,
    arXiv:2101.06983).
    """

    def micro_batches(self, step: int, share: float) -> list[Any]:
        words = torch.arange(12) + step
        cuts = (words % WORDS).split(12 // self.micro)
        return [Pairs(words=cut, partners=(cut * 5 + 1) % WORDS) for cut in cuts]

    @property
    def weights(self) -> dict[str, float]:
        return {"contrast": 1.0}

    def counts(self, batch: Any) -> dict[str, int]:
        return {"contrast": len(batch.words)}

    def tokens(self, batch: Any) -> int:
        return 2 * len(batch.words)

    def backward(self, batches: Sequence[Any], step: StepGradients) -> None:
        states = []
        with torch.no_grad():
            vectors = []
            for batch in batches:
                states.append(torch.get_rng_state())
                vectors.append(self._encode(step.model, batch))
        cached = torch.cat(vectors, dim=1).requires_grad_()  # (2, B, D)
        first, second = cached
        targets = torch.arange(len(first))
        parts = {"contrast": cross_entropy(first @ second.T, targets)}
        step.backward(parts)
        step.record(parts)
        assert cached.grad is not None
        shares = cached.grad.split([len(batch.words) for batch in batches], dim=1)
        for batch, state, share in zip(batches, states, shares, strict=True):
            torch.set_rng_state(state)  # the same dropout as when its vectors were cached
            self._encode(step.model, batch).backward(share)

    @staticmethod
    def _encode(model: nn.Module, batch: Any) -> Tensor:
        """(2, B, D)."""
        return torch.stack([model(batch.words), model(batch.partners)])


@pytest.mark.parametrize("micro", [2, 4])
def test_cached_gradients_of_micro_batches_are_those_of_one_large_batch(
    tmp_path: Path, micro: int
) -> None:
    found = []
    for count in (1, micro):
        run = toy_run(tmp_path, model=ToyModel(dropout=0.0), workload=ContrastiveWork(micro=count))
        found.append(gradients(replace(run, optimizer=AdamWSettings(clip=None))))
    assert any(gradient.abs().max() > 1e-3 for gradient in found[0])
    for whole, cached in zip(*found, strict=True):
        torch.testing.assert_close(cached, whole, rtol=1e-5, atol=1e-7)


def test_a_whole_batch_loss_trains_and_resumes(tmp_path: Path) -> None:
    class Blind(ContrastiveWork):
        def held_out(self) -> list[Any]:
            return []

    stop = StopSignals()  # not entered: nothing but this test asks

    def stopping(look: Progress) -> None:
        stop.received = "SIGTERM" if look.step >= 9 else None

    train(toy_run(tmp_path / "straight", workload=Blind(micro=3)))
    cut = toy_run(
        tmp_path / "cut", workload=Blind(micro=3), watch=stopping, execution=Execution(stop=stop)
    )
    assert train(cut).status == "stopped"
    train(toy_run(tmp_path / "cut", workload=Blind(micro=3)))
    assert final_state(tmp_path / "cut") == final_state(tmp_path / "straight")
