"""A whole fine-tuning run as one frozen tree of settings, read from TOML by name or path."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from bertsmith.config import Count, Overrides, Settings, Share, validated
from bertsmith.tasks.enrichment.branches import BranchSettings
from bertsmith.tasks.enrichment.tags import ChannelReading
from bertsmith.tasks.length import LengthSettings
from bertsmith.tasks.losses import CrossEntropySettings, LossSettings
from bertsmith.tasks.model.columns import AuxiliarySettings
from bertsmith.tasks.model.layers import HeadSettings
from bertsmith.tasks.model.text_vector import Layers, Pooling
from bertsmith.tasks.task import Pair, TaskSettings
from bertsmith.training.recipe import DropoutSettings, TrainingRecipe
from bertsmith.training.recipe_files import RecipeShelf

FINETUNE_RECIPES = RecipeShelf("finetune")
DEFAULT = "default"


class TextVectorSettings(Settings):
    """As `VectorSettings`.

    auto: as sentences are pooled in the model's folder; else the last token, in a causal model
    whose family's head reads the first; else the mean, if that head needs a pooler and there is
    none; else published. Layers: auto is the last; for encoders of words, a mix of all.
    """

    pooling: Pooling | Literal["auto"] = "auto"
    layers: Layers | Literal["auto"] = "auto"

    @property
    def read_layers(self) -> Layers:
        """The layers, as `VectorSettings` has them."""
        return "last" if self.layers == "auto" else self.layers


class EncoderSettings(DropoutSettings):
    """What training does to the encoder."""

    frozen: bool | None = None  # only the head learns; None: as encoders of words always are
    pair: Pair = "cross-encoder"  # bi-encoder: a number for two texts from the cosine of vectors
    special_tokens: Annotated[tuple[str, ...], Field(strict=False)] = ()
    task: Annotated[int, Field(ge=0)] | None = None  # of a task embedding; None: the model's own

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.frozen and (self.dropout or self.attention_dropout):
            raise ValueError("a frozen encoder drops nothing out; there is head.dropout above it")
        return self


class RegularizationSettings(Settings):
    """Against overfitting, in addition to dropout, weight decay and label smoothing."""

    token_dropout: Share = 0.0  # of the tokens of a training text are masked; see `TokenDropout`
    r_drop: Annotated[float, Field(ge=0)] = 0.0  # weight of the divergence of two passes


class KnowledgeSettings(BranchSettings):
    """A knowledge graph whose facts become branches of the texts (K-BERT)."""

    file: str  # lines `subject TAB predicate TAB object`
    ablation: bool = True  # train without it, too, and compare


class ChannelSettings(ChannelReading):
    """Tags of words next to the text (SemBERT): a column of the data, or a tag model's folder."""

    column: Annotated[str, Field(min_length=1)]
    ablation: bool = True  # train without it, too, and compare


class PlanSettings(Settings):
    """How long, in what portions."""

    epochs: Annotated[float, Field(gt=0, le=1e6)] = 4.0
    batch: Count = 16  # examples per step
    micro_tokens: Count = 8_192
    warmup: Share = 0.06
    sampler: Literal["shuffle", "balanced"] = "shuffle"  # balanced: classes are drawn equally often
    evaluations: Count | Annotated[float, Field(gt=0)] = 1  # in each epoch; 0.5: every second one


class FinetuneRecipe(TrainingRecipe):
    """Everything that decides what is learned, and how."""

    task: TaskSettings = TaskSettings()
    length: LengthSettings = LengthSettings()
    vector: TextVectorSettings = TextVectorSettings()
    head: HeadSettings = HeadSettings()
    loss: LossSettings = CrossEntropySettings()
    auxiliary: Mapping[str, AuxiliarySettings] = {}  # further columns to learn, by name
    knowledge: KnowledgeSettings | None = None
    channel: ChannelSettings | None = None
    encoder: EncoderSettings = EncoderSettings()
    regularization: RegularizationSettings = RegularizationSettings()
    plan: PlanSettings = PlanSettings()

    @model_validator(mode="after")
    def _fits(self) -> Self:
        encoder, added = self.encoder, self.regularization
        if self.knowledge is not None and self.channel is not None:
            raise ValueError("knowledge and channel are used one at a time: leave one of them out")
        if encoder.frozen and (added.token_dropout or added.r_drop):
            raise ValueError(
                "a frozen encoder reads each text once: regularization.token_dropout and r_drop "
                "are for encoder.frozen = false"
            )
        if added.r_drop and self.auxiliary:
            raise ValueError(
                "regularization.r_drop compares predictions of the task alone: leave it out, or "
                "auxiliary"
            )
        drops = encoder.dropout != 0 or encoder.attention_dropout or self.head.dropout
        if added.r_drop and not drops:
            raise ValueError(
                "regularization.r_drop compares two passes that differ by dropout, and there is "
                "none: leave it out, or set encoder.dropout"
            )
        return self


def load_finetune_recipe(
    named: str | Path | None, overrides: Overrides = (), *, task: str | None = None
) -> FinetuneRecipe:
    """A recipe with settings given as "section.key=value" laid over it.

    None: the default of `task`, which for tags, answers and choices has lengths of its own.
    """
    name = default_recipe(task) if named is None else named
    tree, source = FINETUNE_RECIPES.tree(name, overrides)
    return validated(FinetuneRecipe, tree, source)


def default_recipe(task: str | None) -> str:
    """The name of the recipe for a task that no recipe was named for."""
    own = f"{DEFAULT}-{task}"
    return own if own in FINETUNE_RECIPES.shipped() else DEFAULT
