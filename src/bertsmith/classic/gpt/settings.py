"""Settings of a causal language model that is trained on lines of words or pieces."""

from __future__ import annotations

from typing import ClassVar, Self

from pydantic import model_validator

from bertsmith.classic.neural.settings import LinePlan, LineSettings
from bertsmith.training.optimizers.optimizers import MuonSettings, OptimizerSettings
from bertsmith.training.pretrain.recipe import ModelSettings

FEWEST = 4  # tokens of a window


class GptSettings(LineSettings):
    """Every token is predicted from those before it in its line (Radford et al. 2018).

    `plan.window` counts tokens, those that begin and end a line among them.
    """

    kind: ClassVar[str] = "gpt"

    model: ModelSettings = ModelSettings(
        size="mini", sees="before", dropout=0.0, init="local_attention", positions=128
    )
    plan: LinePlan = LinePlan(epochs=5.0, lines=128, window=128)
    optimizer: OptimizerSettings = MuonSettings(lr=4e-3, rest_lr=4e-3)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.model.sees != "before":
            raise ValueError('model.sees must be "before": the model reads from left to right')
        if not FEWEST <= self.plan.window <= self.model.positions:
            raise ValueError(
                f"plan.window={self.plan.window} must be {FEWEST} to model.positions, which is "
                f"{self.model.positions}"
            )
        if self.model.decoder_layers is not None:
            raise ValueError("model.decoder_layers is for models with a decoder; leave it out")
        return self
