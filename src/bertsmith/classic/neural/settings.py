"""Settings of neural language models, and the networks they describe."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, model_validator
from torch import nn

from bertsmith.classic.neural.network import (
    NeuralNetwork,
    RecurrentNetwork,
    WindowNetwork,
    initialize,
)
from bertsmith.classic.neural.reading import Reset
from bertsmith.classic.neural.softmax import (
    AdaptiveSoftmax,
    FullSoftmax,
    NoiseWords,
    SoftmaxSettings,
    build_softmax,
)
from bertsmith.config import Count, Depth, Settings, Share, Width
from bertsmith.random_keys import key_of
from bertsmith.training.checkpoints.checkpoint import SaveSettings
from bertsmith.training.loop.averaging import AveragingSettings
from bertsmith.training.loop.best import BestSettings
from bertsmith.training.optimizers.optimizers import AdamWSettings, OptimizerSettings
from bertsmith.training.recipe import PlanLength

Floats = NDArray[np.float64]


class LinePlan(PlanLength):
    """How long, in what portions; exactly one of epochs, steps and budget."""

    lines: Count = 64  # per step
    window: Count = 70  # words that are read together; a longer line is read in pieces
    warmup: Share = 0.02
    evaluate_every: Count = 500  # steps between evaluations where a time limits training


class NeuralPlan(LinePlan):
    """`lines` per step where states are reset at line ends, else `lanes`.

    Gradients are cut after `window` words; states are not.
    """

    lanes: Count = 32  # sequences side by side


class LineSettings(Settings):
    """How a language model of lines is trained, in the one training loop."""

    kind: ClassVar[str]

    plan: LinePlan
    optimizer: OptimizerSettings
    averaging: AveragingSettings = AveragingSettings(tail=0.0)
    best: BestSettings = BestSettings(patience=3)  # by held-out perplexity
    held_out: Annotated[float, Field(gt=0, lt=1)] = 0.05  # share of the lines, the last ones
    save: SaveSettings = SaveSettings(every=10_000, seconds=120.0)
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0


class NeuralSettings(LineSettings):
    """What all neural language models share."""

    reset: Reset = "line"  # where states and contexts begin anew
    width: Width = 200  # of the vector of a word
    hidden: Width = 200
    tied: bool = False  # the softmax uses the vectors of the words
    dropout: Share = 0.2
    softmax: SoftmaxSettings = AdaptiveSoftmax()
    plan: NeuralPlan = NeuralPlan(epochs=8.0)
    optimizer: AdamWSettings = AdamWSettings(lr=2e-3)

    @abstractmethod
    def body(self, classes: int) -> WindowNetwork | RecurrentNetwork:
        """The network below the softmax, for so many words."""

    def network(self, counts: NDArray[np.integer], *, lanes: int | None) -> NeuralNetwork:
        """A model for words with these counts (V,), line ends first, not yet initialized."""
        body = self.body(len(counts))
        shared = body.embedding.weight if self.tied else None
        projected = self.width if self.tied and body.width != self.width else None
        softmax = build_softmax(
            self.softmax,
            width=projected or body.width,
            noise=torch.from_numpy(noise_chances(counts, self.softmax)),
            shared=shared,
        )
        return NeuralNetwork(body, softmax, projected=projected, lanes=lanes)

    def build(self, counts: NDArray[np.integer]) -> NeuralNetwork:
        """A model to train, for words with these counts (V,), line ends first."""
        model = self.network(counts, lanes=None if self.reset == "line" else self.plan.lanes)
        generator = torch.Generator().manual_seed(key_of("weights", seed=self.seed) >> 1)
        initialize(model, torch.from_numpy(noise_chances(counts, FullSoftmax())), generator)
        return model


class NnlmSettings(NeuralSettings):
    """Bengio's network: the last order - 1 words, with or without direct connections."""

    kind: ClassVar[str] = "nnlm"

    order: Annotated[int, Field(ge=2, le=100)] = 5
    width: Width = 100
    direct: bool = False  # from the vectors of the words to the softmax

    @model_validator(mode="after")
    def _one_output(self) -> Self:
        if self.tied and self.direct:
            raise ValueError("tied vectors and direct connections exclude each other; give one")
        return self

    def body(self, classes: int) -> WindowNetwork:
        """A window and a tanh layer."""
        return WindowNetwork(
            classes,
            order=self.order,
            width=self.width,
            hidden=self.hidden,
            direct=self.direct,
            dropout=self.dropout,
        )


class RecurrentSettings(NeuralSettings):
    """What LSTM and GRU share."""

    cell: ClassVar[type[nn.LSTM] | type[nn.GRU]]

    layers: Depth = 1

    def body(self, classes: int) -> RecurrentNetwork:
        """Recurrent layers."""
        return RecurrentNetwork(
            classes,
            self.cell,
            width=self.width,
            hidden=self.hidden,
            layers=self.layers,
            dropout=self.dropout,
        )


class LstmSettings(RecurrentSettings):
    """Long short-term memory (Hochreiter and Schmidhuber 1997)."""

    kind: ClassVar[str] = "lstm"
    cell: ClassVar[type[nn.LSTM]] = nn.LSTM


class GruSettings(RecurrentSettings):
    """Gated recurrent units (Cho et al. 2014, arXiv:1406.1078)."""

    kind: ClassVar[str] = "gru"
    cell: ClassVar[type[nn.GRU]] = nn.GRU


NEURAL_KINDS: dict[str, type[NeuralSettings]] = {
    settings.kind: settings for settings in (NnlmSettings, LstmSettings, GruSettings)
}


def noise_chances(counts: NDArray[np.integer], softmax: Settings) -> Floats:
    """Frequencies of words, as noise raised to a power; what was never seen counts as once."""
    power = softmax.power if isinstance(softmax, NoiseWords) else 1.0
    raised = np.maximum(counts.astype(np.float64), 1.0) ** power
    return np.asarray(raised / raised.sum())
