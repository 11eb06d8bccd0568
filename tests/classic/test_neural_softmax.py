"""Every softmax against the full one: exact where it is exact, within sampling error where not."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertsmith.classic.neural.settings import noise_chances
from bertsmith.classic.neural.softmax import (
    AdaptiveSoftmax,
    FullSoftmax,
    LinearSoftmax,
    NoiseContrast,
    SampledSoftmax,
    SoftmaxKind,
    build_softmax,
    cutoffs_of,
)
from bertsmith.classic.neural.workload import NoiseTable
from bertsmith.errors import ConfigError

WORDS, WIDTH, ROWS = 20, 16, 7
COUNTS = (1000 / np.arange(1, WORDS + 1)).astype(np.int64)


def built(settings: SoftmaxKind) -> nn.Module:
    chances = torch.from_numpy(noise_chances(COUNTS, settings))
    softmax = build_softmax(settings, width=WIDTH, noise=chances, shared=None).double()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in softmax.parameters():
            parameter.normal_(0, 0.4, generator=generator)
    return softmax


def rows_and_targets() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(2)
    rows = torch.randn(ROWS, WIDTH, generator=generator, dtype=torch.double)
    return rows.requires_grad_(), torch.tensor([0, 3, 19, 7, 7, 1, 12])


def gradients(loss: Tensor, rows: Tensor, softmax: nn.Module) -> Tensor:
    """All gradients in one row."""
    wanted = [rows, *softmax.parameters()]
    found = torch.autograd.grad(loss, wanted)
    return torch.cat([one.flatten() for one in found])


def full_gradients(softmax: LinearSoftmax, rows: Tensor, targets: Tensor) -> Tensor:
    logits = F.linear(rows, softmax.weight, softmax.bias)
    return gradients(F.cross_entropy(logits, targets, reduction="sum"), rows, softmax)


def test_the_full_softmax_is_cross_entropy() -> None:
    softmax = built(FullSoftmax())
    rows, targets = rows_and_targets()
    loss = softmax.loss(rows, targets, None)
    assert loss.count == ROWS
    found = gradients(loss.sum, rows, softmax)
    torch.testing.assert_close(found, full_gradients(softmax, rows, targets))
    torch.testing.assert_close(-softmax.scores(rows, targets).sum(), loss.sum)


@pytest.mark.parametrize("cutoffs", [(1,), (4, 11)])
def test_the_adaptive_softmax_sums_to_one_and_has_the_gradient_of_its_probabilities(
    cutoffs: tuple[int, ...],
) -> None:
    softmax = built(AdaptiveSoftmax(cutoffs=cutoffs))
    rows, targets = rows_and_targets()
    logs = softmax.log_probabilities(rows)
    assert logs.shape == (ROWS, WORDS)
    torch.testing.assert_close(logs.exp().sum(1), torch.ones(ROWS, dtype=torch.double))
    plain = gradients(-logs.gather(1, targets[:, None]).sum(), rows, softmax)
    found = gradients(softmax.loss(rows, targets, None).sum, rows, softmax)
    torch.testing.assert_close(found, plain)
    torch.testing.assert_close(
        softmax.scores(rows, targets), logs.gather(1, targets[:, None])[:, 0]
    )


def test_the_sampled_loss_is_its_plain_sum() -> None:
    softmax = built(SampledSoftmax(samples=5))
    rows, targets = rows_and_targets()
    noise = torch.tensor([3, 3, 0, 15, 7])
    chances = noise_chances(COUNTS, SampledSoftmax(samples=5))
    logits = F.linear(rows, softmax.weight, softmax.bias).detach()
    plain = 0.0
    for row, target in enumerate(targets.tolist()):
        total = float(logits[row, target].exp())
        for word in noise.tolist():
            if word != target:
                total += float(logits[row, word].exp()) / (5 * chances[word])
        plain += np.log(total) - float(logits[row, target])
    assert softmax.loss(rows, targets, noise).sum.item() == pytest.approx(plain, rel=1e-6)


def test_the_contrast_loss_is_its_plain_sum() -> None:
    softmax = built(NoiseContrast(samples=4))
    rows, targets = rows_and_targets()
    noise = torch.tensor([3, 3, 0, 15])
    chances = noise_chances(COUNTS, NoiseContrast(samples=4))
    logits = F.linear(rows, softmax.weight, softmax.bias).detach()

    def chance_of_data(row: int, word: int) -> float:
        data = float(logits[row, word].exp())
        return data / (data + 4 * chances[word])

    plain = 0.0
    for row, target in enumerate(targets.tolist()):
        plain -= np.log(chance_of_data(row, target))
        plain -= sum(np.log(1 - chance_of_data(row, word)) for word in noise.tolist())
    assert softmax.loss(rows, targets, noise).sum.item() == pytest.approx(plain, rel=1e-6)


@pytest.mark.parametrize("kind", [SampledSoftmax, NoiseContrast])
def test_gradients_by_noise_come_close_to_the_full_ones_as_sampling_error_does(
    kind: type[SampledSoftmax] | type[NoiseContrast],
) -> None:
    """A hundred times more noise words: a tenth of the error, and no bias that stays."""
    errors = {}
    for samples in (400, 40_000):
        softmax = built(kind(samples=samples))
        rows, targets = rows_and_targets()
        with torch.no_grad():  # noise contrast takes the sum over words as 1: make it so
            logits = F.linear(rows, softmax.weight, softmax.bias)
            rows[:, -1] = 1.0
            softmax.weight[:, -1] = 0.0
            shift = F.linear(rows, softmax.weight, softmax.bias).logsumexp(1)
            assert logits.shape == (ROWS, WORDS)
        if kind is NoiseContrast:
            rows, targets = rows[:1].detach().requires_grad_(), targets[:1]
            with torch.no_grad():
                softmax.bias -= shift[0]
        full = full_gradients(softmax, rows, targets)
        chances = noise_chances(COUNTS, kind(samples=samples))
        found = []
        for seed in range(12):
            noise = NoiseTable(chances, samples=samples, seed=seed).draw(0)
            found.append(gradients(softmax.loss(rows, targets, noise).sum, rows, softmax))
        off = torch.stack(found) - full
        errors[samples] = float(off.pow(2).mean().sqrt() / full.pow(2).mean().sqrt())
    assert errors[40_000] < 0.02, errors
    assert 5 < errors[400] / errors[40_000] < 25, errors


@pytest.mark.parametrize("kind", [SampledSoftmax, NoiseContrast])
def test_scores_are_those_of_the_whole_sum_whatever_was_trained(
    kind: type[SampledSoftmax] | type[NoiseContrast],
) -> None:
    softmax = built(kind(samples=4))
    rows, targets = rows_and_targets()
    logs = F.linear(rows, softmax.weight, softmax.bias).log_softmax(1)
    torch.testing.assert_close(softmax.log_probabilities(rows), logs)
    torch.testing.assert_close(
        softmax.scores(rows, targets), logs.gather(1, targets[:, None])[:, 0]
    )


def test_noise_is_drawn_by_its_chances_and_belongs_to_the_step() -> None:
    chances = noise_chances(COUNTS, SampledSoftmax(power=0.75))
    np.testing.assert_allclose(chances, COUNTS**0.75 / (COUNTS**0.75).sum())
    table = NoiseTable(chances, samples=200_000, seed=3)
    drawn = np.bincount(table.draw(5).numpy(), minlength=WORDS)
    expected = chances * 200_000
    assert ((drawn - expected) ** 2 / expected).sum() < 50  # chi-square, 19 degrees: p = 1e-4
    assert torch.equal(table.draw(5), table.draw(5))
    assert not torch.equal(table.draw(5), table.draw(6))


def test_cutoffs_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ConfigError, match="must rise and stay below the 20 words"):
        cutoffs_of(AdaptiveSoftmax(cutoffs=(5, 20)), WIDTH, WORDS)
    with pytest.raises(ConfigError, match="must rise"):
        cutoffs_of(AdaptiveSoftmax(cutoffs=(9, 5)), WIDTH, WORDS)
    with pytest.raises(ConfigError, match="rows of 16 dimensions allow 2"):
        cutoffs_of(AdaptiveSoftmax(cutoffs=(2, 5, 9)), WIDTH, WORDS)
    assert cutoffs_of(AdaptiveSoftmax(), 200, 10_000) == [1000, 4000]
    assert cutoffs_of(AdaptiveSoftmax(), 16, 3) == [1]


def test_an_adaptive_softmax_cannot_share_the_embeddings() -> None:
    shared = nn.Parameter(torch.zeros(WORDS, WIDTH))
    with pytest.raises(ConfigError, match="tied=false"):
        build_softmax(AdaptiveSoftmax(), width=WIDTH, noise=torch.ones(WORDS), shared=shared)
