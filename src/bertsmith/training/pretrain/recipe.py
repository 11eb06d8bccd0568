"""A whole pre-training run as one frozen tree of settings, read from TOML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self, Union

from pydantic import BeforeValidator, Discriminator, Field, InstanceOf, Tag, model_validator

from bertsmith.config import Settings, changed, validated
from bertsmith.corpus.examples import PAIRED, InputSettings
from bertsmith.errors import unknown
from bertsmith.objectives import PROGRAMS, ProgramSettings
from bertsmith.objectives.masked import MaskedSettings
from bertsmith.training.checkpoints.checkpoint import SaveSettings
from bertsmith.training.execution.execution import RunSettings
from bertsmith.training.loop.averaging import AveragingSettings
from bertsmith.training.loop.evaluate import EvaluationSettings
from bertsmith.training.loop.log import LogSettings
from bertsmith.training.loop.schedule import LinearSettings, ScheduleSettings
from bertsmith.training.optimizers.optimizers import AdamWSettings, OptimizerSettings
from bertsmith.training.pretrain.model_settings import ModelSettings
from bertsmith.training.recipe_files import RecipeShelf

Count = Annotated[int, Field(gt=0)]


class BatchSettings(Settings):
    """The global batch, in texts or in tokens, and the tokens of one pass through the model."""

    sequences: Count | None = None
    tokens: Count | None = None
    micro_tokens: Count = 8_192

    @model_validator(mode="after")
    def _one_size(self) -> Self:
        if (self.sequences is None) == (self.tokens is None):
            raise ValueError("give the batch either in sequences or in tokens")
        return self

    def texts(self, length: int) -> int:
        """Texts of at most `length` tokens in a step, over all ranks."""
        return self.sequences or max(1, (self.tokens or 0) // length)


PRETRAIN_RECIPES = RecipeShelf(
    "pretrain", (("schedule", "steps", "budget"), ("batch", "sequences", "tokens"))
)


class About(Settings):
    """What a recipe is, for people."""

    summary: str = ""
    paper: str = ""


class LaterStage(Settings):
    """From a share of training on, texts are of at most `max_length` tokens."""

    after: Annotated[float, Field(gt=0, lt=1)]
    max_length: Annotated[int, Field(ge=8)]


def _tag(value: object) -> str | None:
    """Which program a value describes; an object of a class that is not in the table is its own."""
    if isinstance(value, ProgramSettings):
        return value.kind if type(value) in PROGRAMS.values() else OWN_PROGRAM
    return str(value.get("kind", "masked")) if isinstance(value, Mapping) else None


def _known(value: object) -> object:
    """Name the programs there are when another one is asked for."""
    kind = value.get("kind") if isinstance(value, Mapping) else None
    if kind is not None and kind not in PROGRAMS:
        raise ValueError(str(unknown("program", str(kind), PROGRAMS)))
    return value


OWN_PROGRAM = "own"
if TYPE_CHECKING:
    AnyProgram = ProgramSettings
else:
    _tagged = [Annotated[program, Tag(kind)] for kind, program in PROGRAMS.items()]
    AnyProgram = Annotated[
        Union[(*_tagged, Annotated[InstanceOf[ProgramSettings], Tag(OWN_PROGRAM)])],
        Discriminator(_tag),
        BeforeValidator(_known),
    ]


class PretrainRecipe(Settings):
    """Everything that decides what is learned, and how."""

    about: About = About()
    model: ModelSettings = ModelSettings()
    input: InputSettings = InputSettings()
    stages: tuple[LaterStage, ...] = ()
    program: AnyProgram = MaskedSettings()
    optimizer: OptimizerSettings = AdamWSettings()
    schedule: ScheduleSettings = LinearSettings(steps=10_000)
    averaging: AveragingSettings = AveragingSettings(tail=0.0)
    batch: BatchSettings = BatchSettings(sequences=64)
    save: SaveSettings = SaveSettings()
    eval: EvaluationSettings = EvaluationSettings()
    log: LogSettings = LogSettings()
    run: RunSettings = RunSettings()

    @model_validator(mode="after")
    def _fits(self) -> Self:
        pair = self.program.pair
        if pair is not None and self.input.kind not in PAIRED:
            raise ValueError(f"{pair} needs pairs; set input.kind to segment_pair")
        if self.input.pair not in (None, pair):
            raise ValueError("leave input.pair out: the program decides how pairs are made")
        ends = [stage.after for stage in self.stages]
        if ends != sorted(set(ends)):
            raise ValueError(f"stages must begin one after another, not at {ends}")
        return self

    @property
    def inputs(self) -> tuple[InputSettings, ...]:
        """The inputs of each stage, with the pairs that the program needs."""
        lengths = [self.input.max_length, *(stage.max_length for stage in self.stages)]
        return tuple(
            changed(self.input, {"pair": self.program.pair, "max_length": length})
            for length in lengths
        )

    def stage_at(self, share: float) -> int:
        """The number of the stage when `share` of training is done."""
        return sum(share >= stage.after for stage in self.stages)


def load_recipe(named: str | Path, overrides: Sequence[str] = ()) -> PretrainRecipe:
    """A recipe by name or path, with settings given as "section.key=value" laid over it."""
    tree, source = PRETRAIN_RECIPES.tree(named, overrides)
    return validated(PretrainRecipe, tree, source)
