"""Mixtures of language models, with weights found by EM on validation text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertsmith.classic.language_model import LanguageModel
from bertsmith.errors import ConfigError

Floats = NDArray[np.float64]
MOST_ROUNDS, CLOSE = 1_000, 1e-8  # of EM: the weights change by less in a round


def mixture_weights(scores: Sequence[Floats]) -> tuple[float, ...]:
    """Weights that maximize the likelihood of a text, by EM from equal ones.

    `scores` are natural logs of the same predictions (N,) by each model.
    """
    table = np.stack([np.asarray(one, dtype=np.float64) for one in scores])  # (models, N)
    if not table.shape[1]:
        raise ConfigError("there is no validation text to find the weights of a mixture on")
    if not np.isfinite(table.max(axis=0)).all():
        raise ConfigError("a word of the validation text has no probability in any of the models")
    chances = np.exp(table - table.max(axis=0))  # scaled by word: the weights do not change
    weights = np.full(len(table), 1 / len(table))
    for _ in range(MOST_ROUNDS):
        shares = weights[:, None] * chances
        after = (shares / shares.sum(axis=0)).mean(axis=1)
        done = np.abs(after - weights).max() < CLOSE
        weights = after
        if done:
            break
    return tuple(weights.tolist())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Mixture:
    """p = sum of weight x p of each model, all over the same words."""

    models: tuple[LanguageModel, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.models) != len(self.weights) or not np.isclose(sum(self.weights), 1.0):
            raise ConfigError(f"mixture weights {self.weights} must be one per model and sum to 1")
        check_same_words(self.models)

    @property
    def kind(self) -> str:
        """A mixture is always named as one."""
        return "mixture of " + " and ".join(model.kind for model in self.models)

    @property
    def words(self) -> tuple[str, ...]:
        """The words by id, the same of all models."""
        return self.models[0].words

    def log_probabilities(self, lines: Sequence[NDArray[np.integer]]) -> list[Floats]:
        """Natural logs for each line: one per word, then that of the line end."""
        every = [model.log_probabilities(lines) for model in self.models]
        return [self._mixed(np.stack(scores)) for scores in zip(*every, strict=True)]

    def next_log_probabilities(self, contexts: Sequence[NDArray[np.integer]]) -> Floats:
        """Natural logs of every next word: one row per context."""
        return self._mixed(
            np.stack([model.next_log_probabilities(contexts) for model in self.models])
        )

    def _mixed(self, scores: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            logs = np.log(np.array(self.weights)).reshape(-1, *(1 for _ in scores.shape[1:]))
        return np.asarray(np.logaddexp.reduce(scores + logs, axis=0))


def check_same_words(models: Sequence[LanguageModel]) -> None:
    """Refuse models whose ids mean other words."""
    first = models[0].words
    for model in models[1:]:
        if model.words != first:
            raise ConfigError(
                f"models of {len(first):,} and {len(model.words):,} words cannot be mixed: their "
                "vocabularies differ; train both on one stream of words"
            )


def fitted_mixture(
    models: Sequence[LanguageModel], validation: Sequence[NDArray[np.integer]]
) -> Mixture:
    """The mixture of these models whose weights fit validation text best."""
    check_same_words(models)
    scores = [
        np.concatenate([np.zeros(0), *model.log_probabilities(validation)]) for model in models
    ]
    return Mixture(models=tuple(models), weights=mixture_weights(scores))
