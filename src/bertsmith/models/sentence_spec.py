"""Sentence settings: how the rows of a text become one vector, and how vectors are compared."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

from bertsmith.errors import ConfigError

if TYPE_CHECKING:
    from torch import Tensor

    from bertsmith.nn.sentence_head import SentenceHead

PoolingKind = Literal["first", "max", "mean", "mean_sqrt_len", "weighted_mean", "last"]
Similarity = Literal["cosine", "dot", "euclidean", "manhattan"]
DenseActivation = Literal["identity", "tanh", "relu", "gelu", "silu", "sigmoid"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseLayer:
    """A linear layer and its activation after pooling; no tensors when only settings were read.

    `residual` adds the input to the output, through `residual_weight` (W, D) if widths differ.
    """

    inputs: int
    outputs: int
    activation: DenseActivation
    has_bias: bool = True
    residual: bool = False
    weight: Tensor | None = field(default=None, compare=False, repr=False)
    bias: Tensor | None = field(default=None, compare=False, repr=False)
    residual_weight: Tensor | None = field(default=None, compare=False, repr=False)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each tensor by its published name."""
        shapes: dict[str, tuple[int, ...]] = {"linear.weight": (self.outputs, self.inputs)}
        if self.has_bias:
            shapes["linear.bias"] = (self.outputs,)
        if self.residual and self.inputs != self.outputs:
            shapes["residual.weight"] = (self.outputs, self.inputs)
        return shapes

    @property
    def tensors(self) -> dict[str, Tensor]:
        """The tensors that are there, by published name."""
        named = {
            "linear.weight": self.weight,
            "linear.bias": self.bias,
            "residual.weight": self.residual_weight,
        }
        return {name: tensor for name, tensor in named.items() if tensor is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceSettings:
    """How the rows of a text become one vector, and how vectors are compared.

    `layer_mix` weights the hidden states that are pooled, those of the embeddings and of every
    layer (N + 1 numbers, divided by their sum); None: the last layer alone.
    """

    pooling: tuple[PoolingKind, ...] = ("mean",)
    normalize: bool = False
    max_length: int | None = None
    lowercase: bool = False
    dense: tuple[DenseLayer, ...] = ()
    prompts: Mapping[str, str] = field(default_factory=dict)
    default_prompt: str | None = None
    pools_prompt: bool = True
    layer_mix: tuple[float, ...] | None = None
    similarity: Similarity = "cosine"

    def __post_init__(self) -> None:
        if not self.pooling or any(kind not in get_args(PoolingKind) for kind in self.pooling):
            raise ConfigError(
                f"pooling is {self.pooling!r}; known: {', '.join(get_args(PoolingKind))}"
            )
        if self.layer_mix is not None:
            finite = all(map(math.isfinite, self.layer_mix))
            if not finite or abs(sum(self.layer_mix)) <= 1e-6 * max(map(abs, self.layer_mix)):
                raise ConfigError(
                    f"layer_mix {self.layer_mix} has no weighted mean: its weights must be finite "
                    "numbers whose sum is not 0"
                )
        if self.max_length is not None and self.max_length < 1:
            raise ConfigError(f"max_length must be at least 1, not {self.max_length}")
        if self.default_prompt is not None and self.default_prompt not in self.prompts:
            raise ConfigError(
                f"the default prompt {self.default_prompt!r} is not among the prompts: "
                f"{', '.join(sorted(self.prompts)) or 'there are none'}"
            )

    def head(self) -> SentenceHead:
        """What computes these vectors."""
        from bertsmith.nn.sentence_head import SentenceHead  # torch, for models alone

        return SentenceHead(self.pooling, self.dense, self.normalize)

    def width(self, hidden: int) -> int:
        """The width of a vector, given the width of a row."""
        return self.dense[-1].outputs if self.dense else hidden * len(self.pooling)
