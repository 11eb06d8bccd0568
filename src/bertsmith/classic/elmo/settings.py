"""Settings of training an ELMo model on text."""

from __future__ import annotations

from typing import ClassVar

from bertsmith.classic.neural.settings import LineSettings, NeuralPlan
from bertsmith.classic.neural.softmax import AdaptiveSoftmax, SoftmaxSettings
from bertsmith.config import Share
from bertsmith.models.word_encoders.elmo_spec import ElmoSpec
from bertsmith.training.optimizers.optimizers import AdamWSettings


class ElmoSettings(LineSettings):
    """Two language models over one character CNN and one softmax, forward and backward.

    States begin anew with each line; longer lines than `window` words are read in pieces. The best
    weights have the least held-out perplexity, the mean of both directions.
    """

    kind: ClassVar[str] = "elmo"

    model: ElmoSpec = ElmoSpec()
    dropout: Share = 0.1
    softmax: SoftmaxSettings = AdaptiveSoftmax()
    plan: NeuralPlan = NeuralPlan(epochs=5.0, lines=64, window=100)
    optimizer: AdamWSettings = AdamWSettings(lr=2e-3)
