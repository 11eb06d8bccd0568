"""What a variant file says about a published model: its shape, tensor names, config keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from bertsmith.errors import ConfigError
from bertsmith.models.positions import RowsKey
from bertsmith.models.spec import Activation, Spec
from bertsmith.models.tensor_forms import StoredAs

if TYPE_CHECKING:
    from torch import nn

# The kinds of heads that published models have; a variant may have others.
HEAD_KINDS = (
    "masked_lm",
    "language_model",
    "next_sentence",
    "sentence_order",
    "replaced_token",
    "sequence",
    "token",
    "span",
)
_CHOSEN = ("sequence", "token")  # heads whose number of outputs can be chosen
ENCODER = "encoder"  # key of the headless model in a table of architectures


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A head to put on a model; `outputs` counts the classes of `sequence` and `token` heads."""

    kind: str
    outputs: int = 2
    dropout: float | None = None  # None: the encoder's, where the published head has dropout

    def __post_init__(self) -> None:
        if self.outputs < 1:
            raise ConfigError(f"the {self.kind} head needs at least 1 output, not {self.outputs}")
        if self.outputs != 2 and self.kind in set(HEAD_KINDS) - set(_CHOSEN):
            raise ConfigError(f"the number of outputs of a {self.kind} head cannot be chosen")
        if self.dropout is not None and not 0.0 <= self.dropout < 1.0:
            raise ConfigError(f"{self.kind} dropout must be in [0, 1), not {self.dropout}")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadSpec:
    """How a family builds a head, and what the head reads.

    `build` makes its module, a Classifier where it is None. A head that `reads_tokens` is called
    with hidden rows and the token embedding, others with hidden rows alone. Heads on whole texts
    read the "first" row of a text, the same "pooled", its "last" row, or "decoded" the decoder's
    last row after it has read the text.
    """

    reads: Literal["rows", "first", "pooled", "last", "decoded"] = "rows"
    activation: str | None = None  # of one more dense layer; "spec": the encoder's
    dropped: bool = False
    dropout_first: bool = True
    build: Callable[[Spec, Head, HeadSpec], nn.Module] | None = None
    reads_tokens: bool = False
    bias: bool = True  # of the last layer

    def activation_of(self, spec: Spec) -> str | None:
        """The activation before the last layer, None: there is one layer only."""
        return spec.activation if self.activation == "spec" else self.activation


def masked_lm_head(spec: Spec, head: Head, own: HeadSpec) -> nn.Module:
    """BERT's masked LM: dense, activation, norm, the token embedding as output matrix."""
    from bertsmith.nn.heads import MaskedLMHead  # torch, which reading a config does without

    return MaskedLMHead(
        spec.hidden,
        spec.embedding,
        spec.vocab_size,
        activation=own.activation_of(spec) or spec.activation,
        norm_eps=spec.norm_eps,
    )


def language_model_head(spec: Spec, head: Head, own: HeadSpec) -> nn.Module:
    """The token embedding as output matrix, with a bias where the family has one."""
    from bertsmith.nn.heads import LanguageModelHead  # torch, as above

    if spec.embedding != spec.hidden:
        raise ConfigError(
            f"a language_model head needs embeddings as wide as the rows: {spec.embedding} is not "
            f"{spec.hidden}"
        )
    return LanguageModelHead(spec.vocab_size, bias=own.bias)


def replaced_token_head(spec: Spec, head: Head, own: HeadSpec) -> nn.Module:
    """ELECTRA's discriminator."""
    from bertsmith.nn.heads import ReplacedTokenHead  # torch, as above

    return ReplacedTokenHead(spec.hidden, activation=own.activation_of(spec) or spec.activation)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigTable:
    """How config.json spells a spec.

    `keys` gives the keys of each Spec field, the first one being written; fields of the decoder are
    "decoder.layers" and so on. A field that is in `keys` but not in `defaults` must stand in every
    config; one of `sparse` is left out where it holds its default. `constants` are keys that must
    hold that value where they are present, `copies` keys that are written with the value of a field
    and change no number in evaluation. `switches` names the key that must be true for a number to
    count, which is 0 otherwise. Fields not named at all are the family's own.
    """

    keys: Mapping[str, tuple[str, ...]]
    defaults: Mapping[str, object] = field(default_factory=dict)
    constants: Mapping[str, object] = field(default_factory=dict)
    copies: Mapping[str, str] = field(default_factory=dict)
    sparse: frozenset[str] = frozenset()
    switches: Mapping[str, str] = field(default_factory=dict)
    activations: Mapping[str, Activation] | None = None  # None: the usual names
    feed_forward_ratio: int | None = None  # of the width, where the config has no number for it
    rows_key: RowsKey = RowsKey()  # noqa: RUF009 - frozen
    positions_after_pad: bool = False  # the first token has the row after that of the padding
    grouped: bool = False  # ALBERT's num_hidden_groups: 1 shares all layers, `layers` none
    head_dropout: Mapping[str, str] = field(default_factory=dict)
    harmless: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A published model as data.

    `names` maps our module paths to published ones, with `{i}` for the number of a block; those
    under `encoder` are written without the `prefix` they get in a model with heads. A path that
    ends in .weight or .bias names a single tensor, published without that ending; `StoredAs` names
    one whose form differs.
    `tied` maps published copies of a tensor in a head over the vocabulary to the tensor of ours
    that they repeat, `copies` those outside of heads. `causal_architectures` are the classes
    of models that see what stands before, where they differ from those of `architectures`.
    """

    name: str
    model_type: str
    spec: Spec
    sizes: Mapping[str, Spec]
    prefix: str
    names: Mapping[str, str | StoredAs]
    tied: Mapping[str, str]
    config: ConfigTable
    heads: Mapping[str, HeadSpec]
    architectures: Mapping[str, str]  # head kinds joined by "+" -> class name
    aliases: tuple[str, ...] = ()  # model types that differ in name only
    copies: Mapping[str, str] = field(default_factory=dict)
    causal_architectures: Mapping[str, str] = field(default_factory=dict)

    def architectures_of(self, spec: Spec) -> Mapping[str, str]:
        """Class names of models with this spec by their heads."""
        causal = self.causal_architectures if spec.sees == "before" else {}
        return {**self.architectures, **causal}


def sized(
    spec: Spec, layers: int, hidden: int, *, heads: int | None = None, embedding: int | None = None
) -> Spec:
    """A spec of another size with heads of width 64 and a feed-forward four times as wide."""
    return replace(
        spec,
        layers=layers,
        hidden=hidden,
        heads=heads or hidden // 64,
        feed_forward=4 * hidden,
        embedding=embedding or hidden,
    )
