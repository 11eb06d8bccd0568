"""Settings of a causal language model that is trained on lines of words or pieces."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from bertsmith.classic.neural.settings import LinePlan, LineSettings
from bertsmith.config import Count
from bertsmith.training.optimizers.optimizers import MuonSettings, OptimizerSettings
from bertsmith.training.pretrain.recipe import ModelSettings, Rate


class GptModelSettings(ModelSettings):
    """The model, which reads from left to right."""

    sees: Literal["before"] = "before"
    dropout: Rate | None = 0.0
    positions: Annotated[int, Field(ge=8)] = 128
    init: Literal["random", "local_attention"] = "local_attention"
    decoder_layers: None = None


class GptPlan(LinePlan):
    """How long, in what portions; a window counts the tokens around a line, too."""

    lines: Count = 128
    window: Annotated[int, Field(ge=4)] = 128


class GptSettings(LineSettings):
    """Every token is predicted from those before it in its line (Radford et al. 2018)."""

    kind: ClassVar[str] = "gpt"

    model: GptModelSettings = GptModelSettings()
    plan: GptPlan = GptPlan(epochs=5.0)
    optimizer: OptimizerSettings = MuonSettings(lr=4e-3, rest_lr=4e-3)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.plan.window > self.model.positions:
            raise ValueError(
                f"plan.window={self.plan.window} is more than model.positions="
                f"{self.model.positions}; raise that, or take a smaller window"
            )
        return self
