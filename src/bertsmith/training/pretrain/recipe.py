"""A whole pre-training run as one frozen tree of settings, read from TOML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self, Union

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    InstanceOf,
    Tag,
    field_validator,
    model_validator,
)

from bertsmith.config import Count, Overrides, Settings, changed, validated
from bertsmith.corpus.examples import PAIRED, InputSettings, frame_of
from bertsmith.errors import ConfigError, unknown
from bertsmith.models.spec import Activation, DecoderSpec, Seen, Sharing, Spec
from bertsmith.models.variant import sized
from bertsmith.models.variants import VARIANTS, find
from bertsmith.objectives import PROGRAMS, ProgramSettings
from bertsmith.objectives.masked import MaskedSettings
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.training.checkpoints.checkpoint import SaveSettings
from bertsmith.training.execution.execution import RunSettings
from bertsmith.training.loop.averaging import AveragingSettings
from bertsmith.training.loop.evaluate import EvaluationSettings
from bertsmith.training.loop.log import LogSettings
from bertsmith.training.loop.schedule import LinearSettings, ScheduleSettings
from bertsmith.training.optimizers.optimizers import AdamWSettings, OptimizerSettings
from bertsmith.training.recipe import About
from bertsmith.training.recipe_files import RecipeShelf

Size = Literal["tiny", "mini", "small", "medium", "base", "large"]
SIZES: dict[str, tuple[int, int]] = {  # layers and width (Turc et al. 2019, arXiv:1908.08962)
    "tiny": (2, 128),
    "mini": (4, 256),
    "small": (4, 512),
    "medium": (8, 512),
    "base": (12, 768),
    "large": (24, 1024),
}
Rate = Annotated[float, Field(ge=0, lt=1)]


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
    "pretrain",
    (("schedule", "steps", "budget"), ("batch", "sequences", "tokens")),
    kinds=(("program", "kind", "masked"),),
)


class ModelSettings(Settings):
    """Variant and size; every other setting replaces that of the size."""

    variant: str = "bert"
    size: Size = "mini"
    layers: Count | None = None
    hidden: Count | None = None
    heads: Count | None = None
    feed_forward: Count | None = None
    embedding: Count | None = None
    activation: Activation | None = None
    sharing: Sharing | None = None
    sees: Seen | None = None  # "before": a left-to-right model, for the program `causal`
    segments: Annotated[int, Field(ge=0)] | None = None  # 6 for the kinds of texts of `unified`
    tasks: Annotated[int, Field(ge=0)] | None = None  # 7 for those of `continual`
    embedding_scale: bool | None = None  # token embeddings times the root of their width (MASS)
    decoder_layers: Count | None = None  # of an encoder-decoder; None: as many as `layers`
    positions: Annotated[int, Field(ge=8)] = 512  # the longest text, where positions are learned
    dropout: Rate | None = None
    attention_dropout: Rate | None = None  # None: 0 on a CPU, where it costs half the speed
    init: Literal["random", "local_attention"] = "random"  # of fresh weights, see models/init.py
    vocab_multiple: Count = 1  # rows of the embedding are rounded up to a multiple of this

    @field_validator("variant")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in VARIANTS:
            raise ValueError(str(unknown("variant", name, VARIANTS)))
        return name


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
    """Name the programs there are when another one is named."""
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
        if self.program.paired and self.input.kind not in PAIRED:
            needing = pair or f"the program {self.program.kind}"
            raise ValueError(f"{needing} needs pairs; set input.kind to segment_pair")
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


def load_recipe(named: str | Path, overrides: Overrides = ()) -> PretrainRecipe:
    """A recipe by name or path, with settings given as "section.key=value" laid over it."""
    tree, source = PRETRAIN_RECIPES.tree(named, overrides)
    return validated(PretrainRecipe, tree, source)


def spec_of(settings: ModelSettings, tokenizer: Tokenizer, *, device: str = "cpu") -> Spec:
    """The whole shape, for a vocabulary and a kind of device."""
    spec = sized_spec(settings, tokenizer.vocab_size, pad=tokenizer.special.pad or 0, device=device)
    return _with_decoder(spec, settings, tokenizer)


def sized_spec(
    settings: ModelSettings, vocab_size: int, *, pad: int = 0, device: str = "cpu"
) -> Spec:
    """The shape of a model without a decoder, for so many tokens."""
    variant = find(settings.variant)
    layers, hidden = SIZES[settings.size]
    factorized = variant.spec.embedding < variant.spec.hidden
    spec = variant.sizes.get(settings.size) or sized(
        variant.spec, layers, hidden, embedding=variant.spec.embedding if factorized else None
    )
    spec = _resized(spec, settings)
    multiple = settings.vocab_multiple
    return replace(
        spec,
        vocab_size=-(-vocab_size // multiple) * multiple,
        positions=spec.positions.resized(
            settings.positions,
            pad + 1 if variant.config.positions_after_pad else spec.positions.table[1],
        ),
        attention_dropout=attention_dropout(settings, spec, device),
        pad_id=pad,
    )


def attention_dropout(settings: ModelSettings, spec: Spec, device: str) -> float:
    """Dropout inside attention: as set, else none on a CPU, where it halves the speed."""
    if settings.attention_dropout is not None:
        return settings.attention_dropout
    return 0.0 if device == "cpu" else spec.attention_dropout


def _resized(spec: Spec, settings: ModelSettings) -> Spec:
    hidden = settings.hidden or spec.hidden
    tied = spec.embedding == spec.hidden  # not factorized: the embedding follows the width
    return replace(
        spec,
        layers=settings.layers or spec.layers,
        hidden=hidden,
        heads=settings.heads or (spec.heads if hidden == spec.hidden else max(1, hidden // 64)),
        feed_forward=settings.feed_forward
        or (spec.feed_forward if hidden == spec.hidden else 4 * hidden),
        embedding=settings.embedding or (hidden if tied else spec.embedding),
        activation=settings.activation or spec.activation,
        sharing=settings.sharing or spec.sharing,
        dropout=spec.dropout if settings.dropout is None else settings.dropout,
        sees=settings.sees or spec.sees,
        segments=spec.segments if settings.segments is None else settings.segments,
        tasks=spec.tasks if settings.tasks is None else settings.tasks,
        embedding_scale=spec.embedding_scale
        if settings.embedding_scale is None
        else settings.embedding_scale,
    )


def _with_decoder(spec: Spec, settings: ModelSettings, tokenizer: Tokenizer) -> Spec:
    """The decoder as wide as the encoder; it starts with the token that ends every text."""
    if spec.decoder is None:
        if settings.decoder_layers is not None:
            raise ConfigError(
                f"{settings.variant} has no decoder, so model.decoder_layers cannot be chosen; "
                "set model.variant=bart"
            )
        return spec
    marks = frame_of(tokenizer, 1).gaps[-1]
    decoder = DecoderSpec(
        layers=settings.decoder_layers or spec.layers,
        heads=spec.heads,
        feed_forward=spec.feed_forward,
        start=marks[-1][0] if marks else spec.decoder.start,
    )
    return replace(spec, decoder=decoder)
