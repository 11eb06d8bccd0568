"""From rows to a batch to logits that can be differentiated by what the encoder reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from bertsmith.errors import ConfigError, TextError
from bertsmith.runtime.load_predictor import load_predictor
from bertsmith.runtime.predictor import ModelPredictor

TEXTS = ["red bird stone", "green tree", "small house river bird large"]


@pytest.fixture
def predictor(classifier: Path) -> ModelPredictor:
    return load_predictor(classifier)


def test_the_logits_of_a_batch_are_those_of_predictions(predictor: ModelPredictor) -> None:
    batch = predictor.batch(TEXTS)
    found = predictor.logits(batch)

    assert not found.requires_grad
    assert batch.numbers.tolist() == [0, 1, 2]
    expected = np.stack([logits for _, logits in predictor.predict_with_logits(TEXTS)])
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-6)


def test_token_vectors_in_place_of_tokens_give_the_same_logits(predictor: ModelPredictor) -> None:
    batch = predictor.batch(TEXTS)
    again = predictor.logits(batch.with_vectors(predictor.token_vectors(batch)))
    assert torch.equal(again, predictor.logits(batch))


def test_a_gradient_by_the_input_embeddings_equals_finite_differences(
    predictor: ModelPredictor,
) -> None:
    predictor.model.double()
    batch = predictor.batch(TEXTS)
    vectors = predictor.token_vectors(batch).requires_grad_()
    logits = predictor.logits(batch.with_vectors(vectors), gradients=True)
    (gradient,) = torch.autograd.grad(logits[1, 0], vectors)

    rng = np.random.default_rng(0)
    own = slice(batch.layout.starts[1], batch.layout.starts[2])
    step = 1e-6
    for row in range(own.start, own.stop):
        column = int(rng.integers(vectors.shape[1]))
        sides = []
        for sign in (1, -1):
            moved = vectors.detach().clone()
            moved[row, column] += sign * step
            sides.append(predictor.logits(batch.with_vectors(moved))[1, 0].item())
        expected = (sides[0] - sides[1]) / (2 * step)
        assert gradient[row, column].item() == pytest.approx(expected, abs=1e-7)
    assert gradient[own].abs().max() > 1e-4
    assert gradient[: own.start].abs().max() == 0  # another text
    assert all(weight.grad is None for weight in predictor.model.parameters())


def test_a_batch_of_no_rows_and_rows_of_other_shape_are_refused(
    predictor: ModelPredictor,
) -> None:
    with pytest.raises(TextError, match="at least one row"):
        predictor.batch([])
    with pytest.raises((TextError, ConfigError), match="1 text per row"):
        predictor.batch([("red", "bird")])
