"""Mixtures of language models: weights by EM, exact sums, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_words import random_words, tiny_settings

from bertsmith.classic.neural.mixture import Mixture, fitted_mixture, mixture_weights
from bertsmith.classic.neural.scoring import NeuralLm
from bertsmith.errors import ConfigError


def some_model(kind: str, *, seed: int = 0, words: int = 12) -> NeuralLm:
    settings = tiny_settings(kind, seed=seed)
    network = settings.build(np.arange(words + 1, 0, -1)).eval()
    names = random_words(2, vocabulary=words).words
    return NeuralLm(settings=settings, words=names, network=network)


def test_weights_are_the_best_of_a_fine_grid() -> None:
    rng = np.random.default_rng(0)
    first, second = np.log(rng.random(500)), np.log(rng.random(500) * 0.8)
    weight, other = mixture_weights([first, second])
    assert weight + other == pytest.approx(1)
    grid = np.linspace(0, 1, 10_001)[:, None]
    likelihood = np.log(grid * np.exp(first) + (1 - grid) * np.exp(second)).sum(axis=1)
    assert weight == pytest.approx(float(grid[likelihood.argmax(), 0]), abs=2e-4)


def test_a_model_that_is_always_better_takes_all() -> None:
    scores = np.log(np.random.default_rng(1).random(200))
    weights = mixture_weights([scores, scores - 1, scores - 2])
    assert weights[0] == pytest.approx(1, abs=1e-5)


def test_very_small_chances_do_not_vanish() -> None:
    weights = mixture_weights([np.array([-2000.0, -3000.0]), np.array([-3000.0, -2000.0])])
    assert weights == pytest.approx((0.5, 0.5))


def test_text_without_words_or_chances_is_refused() -> None:
    with pytest.raises(ConfigError, match="no validation text"):
        mixture_weights([np.zeros(0), np.zeros(0)])
    with pytest.raises(ConfigError, match="no probability in any"):
        mixture_weights([np.array([-np.inf, -1.0]), np.array([-np.inf, -2.0])])


def test_a_mixture_is_the_weighted_sum_and_never_worse_on_its_validation_text() -> None:
    models = [some_model("nnlm"), some_model("gru", seed=5)]
    stream = random_words(50)
    lines = np.split(stream.ids, stream.starts[1:-1])
    mixture = fitted_mixture(models, lines)
    assert mixture.kind == "mixture of nnlm and gru"
    apart = [np.concatenate(model.log_probabilities(lines)) for model in models]
    found = np.concatenate(mixture.log_probabilities(lines))
    plain = np.log(sum(w * np.exp(s) for w, s in zip(mixture.weights, apart, strict=True)))
    np.testing.assert_allclose(found, plain, atol=1e-12)
    assert found.mean() >= max(one.mean() for one in apart) - 1e-4  # EM nears it
    rows = mixture.next_log_probabilities([lines[0][:2], lines[1][:0]])
    np.testing.assert_allclose(np.exp(rows).sum(axis=1), 1, atol=1e-6)


def test_models_of_other_words_and_odd_weights_are_refused() -> None:
    models = (some_model("nnlm"), some_model("nnlm", words=9))
    with pytest.raises(ConfigError, match="12 and 9 words cannot be mixed"):
        fitted_mixture(models, [np.array([1])])
    with pytest.raises(ConfigError, match="sum to 1"):
        Mixture(models=(models[0], models[0]), weights=(0.5, 0.6))
