"""What no other library has: equal texts as candidates, weights of hard negatives, odd settings."""

from __future__ import annotations

import math

import pytest
import torch

from bertsmith.errors import ConfigError
from bertsmith.sentences.train.objectives import (
    Contrastive,
    ContrastiveSettings,
    Cosent,
    CosineRegression,
    SoftmaxSettings,
    Triplet,
    build_matryoshka,
    false_negatives,
)


def vectors(rows: int, seed: int = 0, width: int = 6) -> torch.Tensor:
    return torch.randn(rows, width, generator=torch.Generator().manual_seed(seed))


def picture(mask: torch.Tensor) -> list[str]:
    return ["".join("#" if cell else "." for cell in row) for row in mask.tolist()]


def test_candidates_equal_to_anchor_or_positive_are_no_negatives() -> None:
    # anchor, positive, hard negative; row 1's positive is row 0's, row 2's negative is row 0's
    # anchor, row 3's positive is row 2's anchor
    keys = torch.tensor([[1, 2, 3], [4, 2, 5], [6, 7, 1], [8, 6, 9]])
    assert picture(false_negatives(keys)) == [
        ".#....#.",
        "#.......",
        "...#....",
        "........",
    ]


def test_other_positives_of_an_equal_anchor_are_no_negatives() -> None:
    keys = torch.tensor([[1, 2], [1, 3], [4, 5]])
    assert picture(false_negatives(keys)) == [".#.", "#..", "..."]


def test_a_repeated_row_changes_no_loss() -> None:
    objective = Contrastive(0.05)
    first, second = vectors(4), vectors(4, 1)
    once = objective([first, second], None, torch.arange(8).view(4, 2))
    keys = torch.tensor([[0, 1], [2, 3], [4, 5], [6, 7], [0, 1]])
    again = [torch.cat([one, one[:1]]) for one in (first, second)]
    twice = objective(again, None, keys)
    torch.testing.assert_close(twice[:1], once[:1])
    torch.testing.assert_close(twice[4], once[0])


def test_the_weight_of_a_hard_negative_is_added_to_its_own_logit_alone() -> None:
    columns = [vectors(3, seed) for seed in range(3)]
    plain = (
        torch.nn.functional.normalize(columns[0], dim=1)
        @ torch.nn.functional.normalize(torch.cat(columns[1:]), dim=1).T
        / 0.05
    )
    plain[torch.arange(3), torch.arange(3) + 3] += math.log(2)
    expected = torch.nn.functional.cross_entropy(plain, torch.arange(3), reduction="none")
    torch.testing.assert_close(Contrastive(0.05, math.log(2))(columns), expected)


def test_a_triplet_of_equal_vectors_has_a_finite_gradient() -> None:
    anchor = vectors(2).requires_grad_()
    Triplet("euclidean", 1.0)([anchor, anchor, vectors(2, 1)]).sum().backward()
    assert anchor.grad is not None
    assert torch.isfinite(anchor.grad).all()


def test_cosent_equals_its_formula() -> None:
    first, second = vectors(5), vectors(5, 1)
    scores = torch.tensor([0.0, 2.0, 2.0, 5.0, 1.0])
    cosines = torch.cosine_similarity(first, second).tolist()
    total = sum(
        math.exp(20 * (cosines[j] - cosines[i]))
        for i in range(5)
        for j in range(5)
        if scores[i] > scores[j]
    )
    losses = Cosent(0.05)([first, second], scores)
    assert losses.tolist() == pytest.approx([math.log(1 + total)] * 5, rel=1e-5)


def test_an_objective_of_scores_refuses_pairs_without_them() -> None:
    with pytest.raises(ConfigError, match="needs a score or a label per pair"):
        CosineRegression()([vectors(2), vectors(2)])


@pytest.mark.parametrize("dims", [[3], [6, 7], [6, 6], [6, 0]])
def test_matryoshka_dimensions_that_make_no_sense_are_refused(dims: list[int]) -> None:
    with pytest.raises(ConfigError, match="the width of the vectors"):
        build_matryoshka(ContrastiveSettings(), dims, None, width=6)


def test_matryoshka_needs_a_weight_per_dimension() -> None:
    with pytest.raises(ConfigError, match="2 dims and 1 weights"):
        build_matryoshka(ContrastiveSettings(), [6, 3], [1.0], width=6)


def test_matryoshka_over_softmax_has_a_classifier_per_dimension() -> None:
    objective = build_matryoshka(SoftmaxSettings(), [6, 3], None, width=6, classes=2)
    shapes = [tuple(weight.shape) for weight in objective.parameters()]
    assert shapes == [(2, 18), (2,), (2, 9), (2,)]
    loss = objective([vectors(4), vectors(4, 1)], torch.tensor([0, 1, 1, 0]))
    assert loss.shape == (4,)
