"""The shape of the model to pre-train: a published variant in a size, and what differs from it."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field, field_validator

from bertsmith.config import Settings
from bertsmith.errors import unknown
from bertsmith.models.spec import Activation, Sharing, Spec
from bertsmith.models.variant import sized
from bertsmith.models.variants import VARIANTS, find
from bertsmith.text.tokenizer import Tokenizer

Size = Literal["tiny", "mini", "small", "medium", "base", "large"]
SIZES: dict[str, tuple[int, int]] = {  # layers and width (Turc et al. 2019, arXiv:1908.08962)
    "tiny": (2, 128),
    "mini": (4, 256),
    "small": (4, 512),
    "medium": (8, 512),
    "base": (12, 768),
    "large": (24, 1024),
}
Count = Annotated[int, Field(ge=1)]
Rate = Annotated[float, Field(ge=0, lt=1)]


class ModelSettings(Settings):
    """Variant and size; every other setting replaces what the size says."""

    variant: str = "bert"
    size: Size = "mini"
    layers: Count | None = None
    hidden: Count | None = None
    heads: Count | None = None
    feed_forward: Count | None = None
    embedding: Count | None = None
    activation: Activation | None = None
    sharing: Sharing | None = None
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


def spec_of(settings: ModelSettings, tokenizer: Tokenizer, *, device: str = "cpu") -> Spec:
    """The whole shape, for a vocabulary and a kind of device."""
    variant = find(settings.variant)
    layers, hidden = SIZES[settings.size]
    factorized = variant.spec.embedding < variant.spec.hidden
    spec = variant.sizes.get(settings.size) or sized(
        variant.spec, layers, hidden, embedding=variant.spec.embedding if factorized else None
    )
    spec = _resized(spec, settings)
    pad = tokenizer.special.pad or 0
    multiple = settings.vocab_multiple
    return replace(
        spec,
        vocab_size=-(-tokenizer.vocab_size // multiple) * multiple,
        positions=spec.positions.resized(
            settings.positions, pad + 1 if variant.config.positions_after_pad else 0
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
    )
