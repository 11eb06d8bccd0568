"""Settings of training an ELMo model on text."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from bertsmith.classic.neural.settings import NeuralPlan, Share
from bertsmith.classic.neural.softmax import AdaptiveSoftmax, SoftmaxSettings
from bertsmith.config import Settings
from bertsmith.models.words.elmo_spec import ElmoSpec
from bertsmith.training.checkpoints.checkpoint import SaveSettings
from bertsmith.training.loop.averaging import AveragingSettings
from bertsmith.training.loop.best import BestSettings
from bertsmith.training.optimizers.optimizers import AdamWSettings


class ElmoSettings(Settings):
    """Two language models over one character CNN and one softmax, forward and backward.

    States begin anew with each line; longer lines than `window` words are read in pieces.
    """

    kind: ClassVar[str] = "elmo"

    model: ElmoSpec = ElmoSpec()
    dropout: Share = 0.1
    softmax: SoftmaxSettings = AdaptiveSoftmax()
    plan: NeuralPlan = NeuralPlan(epochs=5.0, lines=64, window=100)
    optimizer: AdamWSettings = AdamWSettings(lr=2e-3)
    averaging: AveragingSettings = AveragingSettings(tail=0.0)
    best: BestSettings = BestSettings(patience=3)  # by held-out perplexity, mean of both directions
    held_out: Annotated[float, Field(gt=0, lt=1)] = 0.05  # share of the lines, the last ones
    save: SaveSettings = SaveSettings(every=10_000, seconds=120.0)
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
