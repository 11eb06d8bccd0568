"""A whole fine-tuning run as one frozen tree of settings, read from TOML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from bertsmith.config import Settings
from bertsmith.tasks.length import LengthSettings
from bertsmith.tasks.losses import CrossEntropySettings, LossSettings
from bertsmith.tasks.model.auxiliary import AuxiliarySettings
from bertsmith.tasks.model.head import HeadSettings
from bertsmith.tasks.model.text_vector import Layers, Pooling
from bertsmith.training.checkpoints.checkpoint import SaveSettings
from bertsmith.training.execution.execution import RunSettings
from bertsmith.training.loop.averaging import AveragingSettings
from bertsmith.training.loop.best import BestSettings
from bertsmith.training.optimizers.optimizers import AdamWSettings, AdamWShape, Positive

Share = Annotated[float, Field(ge=0, lt=1)]
Count = Annotated[int, Field(gt=0)]


class AboutFinetune(Settings):
    """What a recipe is, for people."""

    summary: str = ""
    source: str = ""


class TextVectorSettings(Settings):
    """As `VectorSettings`.

    auto: as sentences are pooled in the model's folder; else the mean, if the family's head needs a
    pooler and there is none; else published.
    """

    pooling: Pooling | Literal["auto"] = "auto"
    layers: Layers = "last"
    drawn: Annotated[int, Field(ge=0)] | None = None  # see `finetune_model.drawn_tokens`


class EncoderSettings(Settings):
    """What training does to the encoder."""

    frozen: bool = False  # the encoder stays as it is; only the head learns
    dropout: Share | None = None  # None: the model's own; 0.1 if it has none
    attention_dropout: Share | None = None  # None: 0 on CPUs, where it is slow; else the model's
    masked: Share = 0.0  # of the tokens of a training text, others each time; see `MaskedTokens`
    agreement: Annotated[float, Field(ge=0)] = 0.0  # texts are read twice; see `tasks.agreement`
    special_tokens: Annotated[tuple[str, ...], Field(strict=False)] = ()

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.frozen and (self.dropout or self.attention_dropout):
            raise ValueError("a frozen encoder drops nothing out; there is head.dropout above it")
        if self.frozen and self.masked:
            raise ValueError("a frozen encoder reads each text once, so nothing of it is masked")
        if self.frozen and self.agreement:
            raise ValueError("a frozen encoder reads each text once, so no two readings can agree")
        return self


class FinetuneOptimizer(AdamWShape):
    """AdamW, whose rate may be left to the model."""

    lr: Positive | None = None  # None: what suits the model, see `usual_rates`

    def at(self, rate: float) -> AdamWSettings:
        """The same with this rate."""
        return AdamWSettings.model_validate({**self.model_dump(), "lr": rate})


class PlanSettings(Settings):
    """How long, in what portions."""

    epochs: Annotated[float, Field(gt=0)] = 4.0
    batch: Count = 16  # examples a step
    micro_tokens: Count = 8_192
    warmup: Share = 0.06
    sampler: Literal["shuffle", "balanced"] = "shuffle"  # balanced: classes are drawn alike
    evaluations: Count | Annotated[float, Field(gt=0)] = 1  # in each epoch; 0.5: every second one


class TaskSettings(Settings):
    """What is asked, beyond what the data says."""

    crf: bool = False  # tagging: learn which tags follow each other


class FinetuneRecipe(Settings):
    """Everything that decides what is learned, and how."""

    about: AboutFinetune = AboutFinetune()
    task: TaskSettings = TaskSettings()
    length: LengthSettings = LengthSettings()
    vector: TextVectorSettings = TextVectorSettings()
    head: HeadSettings = HeadSettings()
    loss: LossSettings = CrossEntropySettings()
    auxiliary: Mapping[str, AuxiliarySettings] = {}  # further columns to learn, by name
    encoder: EncoderSettings = EncoderSettings()
    optimizer: FinetuneOptimizer = FinetuneOptimizer()
    plan: PlanSettings = PlanSettings()
    averaging: AveragingSettings = AveragingSettings(tail=0.0)
    best: BestSettings = BestSettings()
    save: SaveSettings = SaveSettings(every=10_000, seconds=120.0)
    run: RunSettings = RunSettings()

    @model_validator(mode="after")
    def _fits(self) -> Self:
        encoder = self.encoder
        if encoder.agreement and self.auxiliary:
            raise ValueError(
                "encoder.agreement compares what two readings say of the task alone: leave it out, "
                "or auxiliary"
            )
        drops = encoder.dropout != 0 or encoder.attention_dropout or self.head.dropout
        if encoder.agreement and not drops:
            raise ValueError(
                "encoder.agreement compares two readings that differ by dropout, and there is "
                "none: leave it out, or set encoder.dropout"
            )
        return self
