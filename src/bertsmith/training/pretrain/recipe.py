"""A whole pre-training run as one frozen tree of settings, read from TOML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from bertsmith.config import Settings, changed, validated
from bertsmith.corpus.plans.examples import PAIRED, InputSettings
from bertsmith.corpus.plans.pairs import PairTask
from bertsmith.objectives.masking.settings import MaskSettings, ObjectiveWeights
from bertsmith.training.checkpoints.checkpoint import SaveSettings
from bertsmith.training.execution.execution import RunSettings
from bertsmith.training.loop.averaging import AveragingSettings
from bertsmith.training.loop.evaluate import EvaluationSettings
from bertsmith.training.loop.log import LogSettings
from bertsmith.training.loop.schedule import LinearSettings, ScheduleSettings
from bertsmith.training.optimizers.optimizers import AdamWSettings, OptimizerSettings
from bertsmith.training.pretrain.model_settings import ModelSettings
from bertsmith.training.recipe_files import Shelf

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


PAIR_TASKS: dict[str, PairTask] = {"nsp": "next_sentence", "sop": "sentence_order"}
PRETRAIN_RECIPES = Shelf(
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


class GeneratorSettings(Settings):
    """The small masked LM that replaces tokens for a discriminator (ELECTRA)."""

    width: Annotated[float, Field(gt=0, le=1)] = 0.25  # as a share of the discriminator's


class PretrainRecipe(Settings):
    """Everything that decides what is learned, and how."""

    about: About = About()
    model: ModelSettings = ModelSettings()
    generator: GeneratorSettings | None = None
    input: InputSettings = InputSettings()
    stages: tuple[LaterStage, ...] = ()
    mask: MaskSettings = MaskSettings()
    objectives: ObjectiveWeights
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
        asked = [PAIR_TASKS[name] for name in self.objectives if name in PAIR_TASKS]
        if len(asked) > 1:
            raise ValueError("nsp and sop make pairs in different ways; give one a weight of 0")
        if asked and self.input.kind not in PAIRED:
            raise ValueError(f"{asked[0]} needs pairs; set input.kind to segment_pair")
        if self.input.pair is not None and [self.input.pair] != asked:
            raise ValueError(
                "leave input.pair out: nsp and sop of objectives say how pairs are made"
            )
        if ("rtd" in self.objectives) != (self.generator is not None):
            raise ValueError("the objective rtd and the section generator belong together")
        ends = [stage.after for stage in self.stages]
        if ends != sorted(set(ends)):
            raise ValueError(f"stages must begin one after another, not at {ends}")
        return self

    @property
    def inputs(self) -> tuple[InputSettings, ...]:
        """The inputs of each stage, with the pairs that the objectives ask for."""
        asked = [PAIR_TASKS[name] for name in self.objectives if name in PAIR_TASKS]
        pair = asked[0] if asked else None
        lengths = [self.input.max_length, *(stage.max_length for stage in self.stages)]
        return tuple(
            changed(self.input, {"pair": pair, "max_length": length}) for length in lengths
        )

    def stage_at(self, share: float) -> int:
        """The number of the stage when `share` of training is done."""
        return sum(share >= stage.after for stage in self.stages)


def load_recipe(named: str | Path, overrides: Sequence[str] = ()) -> PretrainRecipe:
    """A recipe by name or path, with settings given as "section.key=value" laid over it."""
    tree, source = PRETRAIN_RECIPES.tree(named, overrides)
    return validated(PretrainRecipe, _without_zeros(tree), source)


def _without_zeros(tree: Mapping[str, Any]) -> dict[str, Any]:
    """A weight of 0 leaves an objective out, so that an override can do it."""
    table = tree.get("objectives")
    if not isinstance(table, Mapping):
        return dict(tree)
    return {**tree, "objectives": {name: w for name, w in table.items() if w != 0 or w is False}}
