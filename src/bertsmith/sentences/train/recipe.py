"""A whole run of sentence training as one frozen tree of settings, read from TOML."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from bertsmith.config import Settings, validated
from bertsmith.models.sentence_spec import PoolingKind
from bertsmith.sentences.train.objectives import ObjectiveSettings, Positive
from bertsmith.training.checkpoints.checkpoint import SaveSettings
from bertsmith.training.execution.execution import RunSettings
from bertsmith.training.finetune.recipe import FinetuneOptimizer
from bertsmith.training.loop.averaging import AveragingSettings
from bertsmith.training.loop.best import BestSettings
from bertsmith.training.loop.schedule import LinearSettings, Seconds
from bertsmith.training.recipe_files import RecipeShelf

Share = Annotated[float, Field(ge=0, lt=1)]
Count = Annotated[int, Field(gt=0)]

SENTENCE_RECIPES = RecipeShelf(
    "sentences",
    either_or=(
        ("plan", "epochs", "steps"),
        ("plan", "epochs", "budget"),
        ("plan", "steps", "budget"),
    ),
)
DEFAULT = "sentences"


class AboutSentences(Settings):
    """What a recipe is, for people."""

    summary: str = ""
    source: str = ""


class SentenceVector(Settings):
    """How rows become one vector: as the model's folder says, or as is set here."""

    pooling: PoolingKind | Literal["auto"] = "auto"  # auto: the folder's own, else the mean
    normalize: bool | None = None  # None: as the folder says
    max_length: Count = 128  # tokens of a text in training; the saved model keeps its own limit


class MatryoshkaSettings(Settings):
    """Dimensions that vectors may be cut to later; none: only the whole vector is trained."""

    dims: Annotated[tuple[Count, ...], Field(strict=False)] = ()
    weights: Annotated[tuple[Positive, ...], Field(strict=False)] | None = None


class DropoutSettings(Settings):
    """Dropout of the encoder in training."""

    dropout: Share | None = None  # None: the model's own; 0.1 if it has none
    attention_dropout: Share | None = None  # None: 0 on CPUs, where it is slow; else the model's


class SentencePlan(Settings):
    """How long, in what portions; exactly one of epochs, steps and budget."""

    epochs: Annotated[float, Field(gt=0)] | None = None
    steps: Count | None = None
    budget: Seconds | None = None
    batch: Count = 64  # rows per step
    micro_tokens: Count = 2_048  # tokens of a pass; a larger batch needs no more memory
    warmup: Share = 0.1
    evaluations: Count = 10  # of the dev rows during training
    evaluate_every: Count = 50  # steps between them where a time limits training

    @model_validator(mode="after")
    def _one_length(self) -> Self:
        if sum(value is not None for value in (self.epochs, self.steps, self.budget)) != 1:
            raise ValueError("give exactly one of epochs, steps and budget")
        return self

    def schedule(self, rows: int) -> LinearSettings:
        """Up and down in straight lines over the steps, or over the time."""
        if self.budget is not None:
            return LinearSettings(budget=self.budget, warmup=self.warmup)
        steps = self.steps or max(1, round(rows / self.batch * (self.epochs or 1.0)))
        return LinearSettings(steps=steps, warmup=self.warmup)

    def every(self, steps: int | None) -> int:
        """Steps between two evaluations."""
        return self.evaluate_every if steps is None else max(1, steps // self.evaluations)


class SentenceRows(Settings):
    """What rows mean, where the file does not say it."""

    positive: str | None = None  # the label of pairs that mean the same
    range: Annotated[tuple[float, float], Field(strict=False)] | None = None  # of scores
    dev: Annotated[float, Field(gt=0, lt=1)] = 0.1  # share of the rows, where there is no dev file


class SentenceRecipe(Settings):
    """Everything that decides what is learned, and how."""

    about: AboutSentences = AboutSentences()
    objective: ObjectiveSettings | None = None  # None: by the kind of data
    matryoshka: MatryoshkaSettings = MatryoshkaSettings()
    vector: SentenceVector = SentenceVector()
    encoder: DropoutSettings = DropoutSettings()
    data: SentenceRows = SentenceRows()
    optimizer: FinetuneOptimizer = FinetuneOptimizer()
    plan: SentencePlan = SentencePlan(epochs=1.0)
    averaging: AveragingSettings = AveragingSettings(tail=0.0)
    best: BestSettings = BestSettings()
    save: SaveSettings = SaveSettings(every=10_000, seconds=120.0)
    run: RunSettings = RunSettings()


def load_sentence_recipe(named: str | Path | None, overrides: Sequence[str] = ()) -> SentenceRecipe:
    """A recipe with settings given as "section.key=value" laid over it."""
    tree, source = SENTENCE_RECIPES.tree(named or DEFAULT, overrides)
    return validated(SentenceRecipe, tree, source)
