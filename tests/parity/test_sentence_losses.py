"""Losses and gradients of every objective against sentence-transformers, on the same vectors."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from bertsmith.sentences.train.objectives import (
    Contrastive,
    ContrastiveSettings,
    Cosent,
    CosentSettings,
    CosineRegression,
    CosineSettings,
    Matryoshka,
    Softmax,
    SoftmaxSettings,
    Triplet,
    TripletSettings,
    build_matryoshka,
    build_objective,
)

losses = pytest.importorskip("sentence_transformers.losses")
N, D = 12, 16
SEEDS = (0, 1, 2)


class Given(nn.Module):
    """Stands in for a sentence-transformers model: its features are the vectors themselves."""

    device = torch.device("cpu")

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"sentence_embedding": features["vectors"]}

    def get_embedding_dimension(self) -> int:
        return D


def columns(number: int, seed: int) -> list[Tensor]:
    random = torch.Generator().manual_seed(seed)
    return [torch.randn(N, D, generator=random).requires_grad_() for _ in range(number)]


def of_peer(loss: Any, vectors: list[Tensor], targets: Tensor | None) -> Tensor:
    return loss([{"vectors": column} for column in vectors], targets)


def assert_equal(ours: Any, theirs: Any, number: int, targets: Tensor | None, seed: int) -> None:
    """The same loss, and the same gradients of vectors and weights."""
    first, second = columns(number, seed), columns(number, seed)
    mine, peer = ours(first, targets).mean(), of_peer(theirs, second, targets)
    assert mine.item() == pytest.approx(peer.item(), rel=1e-6, abs=1e-6)
    mine.backward()
    peer.backward()
    for one, two in zip(first, second, strict=True):
        assert one.grad is not None
        assert two.grad is not None
        torch.testing.assert_close(one.grad, two.grad, rtol=1e-5, atol=1e-6)
        assert one.grad.abs().max() > 0
    for one, two in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one.grad, two.grad, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_softmax(seed: int) -> None:
    ours = build_objective(SoftmaxSettings(), width=D, classes=3)
    assert isinstance(ours, Softmax)
    theirs = losses.SoftmaxLoss(Given(), D, 3)
    theirs.classifier.load_state_dict(ours.classifier.state_dict())
    assert_equal(ours, theirs, 2, torch.arange(N) % 3, seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_cosine_regression(seed: int) -> None:
    ours = build_objective(CosineSettings(), width=D)
    assert isinstance(ours, CosineRegression)
    targets = torch.rand(N, generator=torch.Generator().manual_seed(seed))
    assert_equal(ours, losses.CosineSimilarityLoss(Given()), 2, targets, seed)


@pytest.mark.parametrize(
    ("distance", "margin"),
    list(product(("euclidean", "cosine", "manhattan"), (0.3, 1.0, 5.0))),
)
def test_triplet(distance: Any, margin: float) -> None:
    ours = build_objective(TripletSettings(distance=distance, margin=margin), width=D)
    assert isinstance(ours, Triplet)
    metric = getattr(losses.TripletDistanceMetric, distance.upper())
    theirs = losses.TripletLoss(Given(), distance_metric=metric, triplet_margin=margin)
    assert_equal(ours, theirs, 3, None, 0)


@pytest.mark.parametrize(("negatives", "temperature"), list(product((0, 1, 3), (0.05, 0.2))))
def test_contrast_with_hard_negatives(negatives: int, temperature: float) -> None:
    ours = build_objective(ContrastiveSettings(temperature=temperature), width=D)
    assert isinstance(ours, Contrastive)
    theirs = losses.MultipleNegativesRankingLoss(Given(), scale=1 / temperature)
    assert_equal(ours, theirs, 2 + negatives, None, negatives)


@pytest.mark.parametrize("seed", SEEDS)
def test_cosent_with_tied_scores(seed: int) -> None:
    ours = build_objective(CosentSettings(), width=D)
    assert isinstance(ours, Cosent)
    targets = torch.randint(0, 4, (N,), generator=torch.Generator().manual_seed(seed)).float()
    assert len(set(targets.tolist())) < N
    assert_equal(ours, losses.CoSENTLoss(Given()), 2, targets, seed)


@pytest.mark.parametrize("name", ["cosine", "triplet", "contrastive", "cosent"])
def test_matryoshka_over_each(name: str) -> None:
    dims, weights = [16, 8, 4], [1.0, 0.5, 2.0]
    random = torch.Generator().manual_seed(3)
    scores = torch.rand(N, generator=random)
    settings, peer, number, targets = {
        "cosine": (CosineSettings(), losses.CosineSimilarityLoss(Given()), 2, scores),
        "triplet": (
            TripletSettings(margin=1.0),
            losses.TripletLoss(Given(), triplet_margin=1.0),
            3,
            None,
        ),
        "contrastive": (
            ContrastiveSettings(),
            losses.MultipleNegativesRankingLoss(Given()),
            3,
            None,
        ),
        "cosent": (CosentSettings(), losses.CoSENTLoss(Given()), 2, scores),
    }[name]
    ours = build_matryoshka(settings, dims, weights, width=D)
    assert isinstance(ours, Matryoshka)
    theirs = losses.MatryoshkaLoss(peer.model, peer, dims, matryoshka_weights=weights)
    assert_equal(ours, theirs, number, targets, 4)


class Summed(nn.Module):
    """One loss of the peer per dimension: its softmax has a classifier of one width only."""

    def __init__(self, dims: list[int], weights: list[float]) -> None:
        super().__init__()
        given = Given()
        self.parts = nn.ModuleList(
            losses.MatryoshkaLoss(given, losses.SoftmaxLoss(given, dim, 3), [dim], [weight])
            for dim, weight in zip(dims, weights, strict=True)
        )

    def forward(self, features: list[dict[str, Tensor]], targets: Tensor) -> Tensor:
        return torch.stack(
            [part([dict(one) for one in features], targets) for part in self.parts]
        ).sum()


@pytest.mark.parametrize("dims", [[16], [16, 8, 4]])
def test_matryoshka_over_softmax(dims: list[int]) -> None:
    weights = [1.0, 0.5, 2.0][: len(dims)]
    ours = build_matryoshka(SoftmaxSettings(), dims, weights, width=D, classes=3)
    theirs = Summed(dims, weights)
    for inner, part in zip(ours.inner, theirs.parts, strict=True):
        part.loss.classifier.load_state_dict(inner.classifier.state_dict())
    assert_equal(ours, theirs, 2, torch.arange(N) % 3, 5)
