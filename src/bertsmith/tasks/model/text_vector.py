"""How a text becomes one vector: which layers are read, and how rows become one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from bertsmith.config import Settings
from bertsmith.errors import ConfigError, unknown
from bertsmith.nn.pooling import pool
from bertsmith.tasks.enrichment.tag_channel import ChannelShape

Layers = (
    Literal["last", "mix", "sum4", "concat4", "weighted", "all_first"] | Annotated[int, Field(ge=0)]
)
Pooling = Literal["published", "first", "mean", "max", "attention", "last"]
LAST_FOUR = 4
FOUR = ("sum4", "concat4")
COMBINED = (*FOUR, "weighted", "all_first")
POOLINGS = ("first", "mean", "max", "attention")
POOLED_IN_WORDS = {
    "first": "the first token",
    "mean": "the mean of all tokens",
    "max": "the largest value over all tokens",
    "attention": "a mean of all tokens with learned weights",
    "last": "the last token",
}
LAYERS_IN_WORDS = {
    "last": "last layer",
    "sum4": "sum of the last four layers",
    "concat4": "last four layers side by side",
    "weighted": "mean of all layers with learned weights",
    "mix": "mean of all layers, standardized, with learned weights",
    "all_first": "all layers side by side",
}


class VectorSettings(Settings):
    """Which rows of which layers make the vector of a text.

    `published`: as the model's own family classifies, so that other libraries load the folder.
    `layers`: the last, one by number (0: the embeddings), the sum or all columns of the last four,
    a mean with learned weights (Peters et al. 2018, arXiv:1802.05365), or the first tokens of all
    layers side by side. "mix" is the mean with learned weights times a learned gamma, made before
    all that follows, so that tasks on single rows and `head.lstm` read it, too; columns of a frozen
    encoder get mean 0 and deviation 1 first. With a `channel`, rows of words with their tags take
    the place of tokens.
    """

    pooling: Pooling = "published"
    layers: Layers = "last"
    channel: ChannelShape | None = None

    @property
    def is_published(self) -> bool:
        """Whether the model's own head does all of it."""
        return self.pooling == "published"

    @property
    def needs_layers(self) -> bool:
        """Whether other layers than the last are read."""
        return self.layers != "last"

    @property
    def combines_layers(self) -> bool:
        """Whether the vector of a text itself is made of several layers, or of a lower one."""
        return self.layers not in ("last", "mix")

    def in_words(self) -> str:
        """Which rows of which layers, for reports."""
        layers = self.layers
        where = f"layer {layers}" if isinstance(layers, int) else LAYERS_IN_WORDS[layers]
        return f"{POOLED_IN_WORDS[self.pooling]}, {where}"


class TextVector(nn.Module):
    """The hidden rows of texts as one vector each: (T, D) of every layer -> (B, W)."""

    def __init__(self, settings: VectorSettings, *, hidden: int, layers: int) -> None:
        """`layers` is the number of blocks N; there are N + 1 layers to read."""
        super().__init__()
        if settings.is_published:
            raise ConfigError("published pooling belongs to the model's own head")
        if isinstance(settings.layers, int) and settings.layers > layers:
            raise ConfigError(f"there is no layer {settings.layers}; the model has {layers}")
        if settings.layers in FOUR and layers < LAST_FOUR:
            raise ConfigError(f"{settings.layers} reads four layers; the model has {layers}")
        self.settings = settings
        wide = {"concat4": LAST_FOUR, "all_first": layers + 1}
        self.width = hidden * wide.get(str(settings.layers), 1)
        self.mix = nn.Parameter(torch.zeros(layers + 1)) if settings.layers == "weighted" else None
        attends = settings.pooling == "attention"
        self.query = nn.Parameter(torch.zeros(self.width)) if attends else None

    def forward(self, layers: Sequence[Tensor], lengths: Sequence[int]) -> Tensor:
        """All layers, or the last alone if that is what is read -> (B, W)."""
        if self.settings.layers == "all_first":
            return torch.cat([pool("first", rows, lengths) for rows in layers], dim=1)
        rows = self._rows(layers)
        if self.query is None:
            return pool(self.settings.pooling, rows, lengths)
        return self._attended(rows, self.query, lengths)

    def _rows(self, layers: Sequence[Tensor]) -> Tensor:
        """(T, W)."""
        which = self.settings.layers
        if which == "sum4":
            return torch.stack(list(layers[-LAST_FOUR:])).sum(dim=0)
        if which == "concat4":
            return torch.cat(list(layers[-LAST_FOUR:]), dim=1)
        if self.mix is not None:
            weights = self.mix.softmax(dim=0)
            return (torch.stack(list(layers)) * weights[:, None, None]).sum(dim=0)
        return layers[which] if isinstance(which, int) else layers[-1]

    @staticmethod
    def _attended(rows: Tensor, query: Tensor, lengths: Sequence[int]) -> Tensor:
        """A mean whose weights are a softmax over each text: (T, W) -> (B, W)."""
        sizes = torch.tensor(lengths, device=rows.device)
        scores = (rows @ query) / rows.shape[1] ** 0.5  # (T,)
        top = torch.segment_reduce(scores, "max", lengths=sizes, unsafe=True)
        weights = (scores - top.detach().repeat_interleave(sizes)).exp()
        total = torch.segment_reduce(weights, "sum", lengths=sizes, unsafe=True)
        summed = torch.segment_reduce(rows * weights[:, None], "sum", lengths=sizes, unsafe=True)
        return summed / total[:, None]


def vector_choices(
    blocks: int, poolings: Sequence[str] = (), layers: Sequence[str | int] = ()
) -> dict[str, VectorSettings]:
    """Choices by name ("mean-last", "first-layer11") for a model of so many blocks.

    () stands for all poolings, and for the last layer, the one below it and every combination.
    Combinations of four layers need four blocks; the first tokens of all layers have no other
    pooling.
    """
    wanted = poolings or POOLINGS
    for name in wanted:
        if name not in POOLINGS:
            raise unknown("pooling", name, POOLINGS)
    read = [_layers(name, blocks) for name in layers or _usual(blocks)]
    choices: dict[str, VectorSettings] = {}
    for which in read:
        for pooling in wanted:
            if which == "all_first" and pooling != "first":
                continue
            choice = VectorSettings(pooling=pooling, layers=which)  # type: ignore[arg-type]
            choices[choice_name(choice)] = choice
    if not choices:
        raise ConfigError("all_first reads first tokens alone: give --pooling first with it")
    return choices


def choice_name(choice: VectorSettings) -> str:
    """A short, unique name."""
    if choice.layers == "all_first":
        return "first-all"
    which = f"layer{choice.layers}" if isinstance(choice.layers, int) else choice.layers
    return f"{choice.pooling}-{which}"


def _usual(blocks: int) -> list[str | int]:
    below: list[str | int] = [blocks - 1] if blocks > 1 else []
    return ["last", *below, *(n for n in COMBINED if blocks >= LAST_FOUR or n not in FOUR)]


def _layers(name: str | int, blocks: int) -> Layers:
    if isinstance(name, int) or name.isdecimal():
        number = int(name)
        if number > blocks:
            raise ConfigError(
                f"there is no layer {number}; the model has {blocks}, and 0 are the embeddings"
            )
        return number
    if name not in ("last", *COMBINED):
        raise unknown("choice of layers", name, ("last", *COMBINED, "a number"))
    if name in FOUR and blocks < LAST_FOUR:
        raise ConfigError(f"{name} reads four layers; the model has {blocks}")
    return name  # type: ignore[return-value]
