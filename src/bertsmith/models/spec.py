"""The shape of an encoder as data: all that decides its numbers but the weights."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

from bertsmith.errors import ConfigError
from bertsmith.models.positions import Learned, Positions, SegmentRecurrent

Activation = Literal["gelu", "gelu_tanh", "relu", "silu", "tanh"]
Sharing = Literal["none", "all", "attention", "feed_forward"]
Norm = Literal["after", "before"]
Seen = Literal["all", "before"]
Form = Literal["bidirectional", "causal", "queries", "decoder"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderSpec:
    """The shape of a decoder; width, norms, positions and activation are those of the encoder.

    `start` is the token that stands before every text the decoder reads.
    """

    layers: int
    heads: int
    feed_forward: int
    start: int = 2

    def __post_init__(self) -> None:
        for name in ("layers", "heads", "feed_forward"):
            if getattr(self, name) < 1:
                raise ConfigError(f"decoder {name} must be at least 1, not {getattr(self, name)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerShape:
    """The shape of one block: heads of `head_width` each, and the width of its feed-forward."""

    heads: int
    head_width: int
    feed_forward: int

    def __post_init__(self) -> None:
        for name in ("heads", "head_width", "feed_forward"):
            if getattr(self, name) < 1:
                raise ConfigError(f"a layer's {name} must be at least 1, not {getattr(self, name)}")

    @property
    def attended(self) -> int:
        """The columns of queries, keys and values: heads times their width."""
        return self.heads * self.head_width


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """The shape of an encoder; the defaults are BERT-base, uncased.

    `heads` and `feed_forward` are those of every block; where blocks differ, as after pruning,
    `shapes` has one for each and `layer_shapes` says what is built. Shapes that a model without
    them has as well are kept as `heads` and `feed_forward` alone, so that equal models have equal
    specs.
    """

    vocab_size: int = 30_522
    hidden: int = 768
    layers: int = 12
    heads: int = 12
    feed_forward: int = 3072
    embedding: int = 768  # E: differs from `hidden` when the embedding is factorized
    projected: bool = False  # a projection E -> D even where they are equal (ALBERT)
    activation: Activation = "gelu"
    positions: Positions = Learned()  # noqa: RUF009 - frozen
    segments: int = 2  # 0: the model has no segment embedding
    tasks: int = 0  # rows of the task embedding (ERNIE 2.0); 0: there is none
    task: int = 0  # the task of texts that come without one
    channels: tuple[tuple[str, int], ...] = ()  # further embeddings: name and number of rows
    embedding_norm: bool = True  # a norm over the sum of embeddings
    embedding_scale: bool = False  # token embeddings times sqrt(E)
    sees: Seen = "all"  # rows see their whole text, or themselves and what stands "before" (causal)
    sharing: Sharing = "none"
    norm: Norm = "after"  # each residual sum, or "before" each part (pre-norm)
    norm_eps: float = 1e-12
    pooler: bool = True  # a tanh layer over the first token, as BERT pre-trains it
    dropout: float = 0.1
    attention_dropout: float = 0.1
    pad_id: int = 0
    shapes: tuple[LayerShape, ...] = ()  # of every block, (): all as `heads` and `feed_forward`
    decoder: DecoderSpec | None = None

    def __post_init__(self) -> None:
        for name in ("vocab_size", "hidden", "layers", "heads", "feed_forward", "embedding"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.shapes:
            self._check_shapes()
        if not self.shapes and self.hidden % self.heads:
            raise ConfigError(f"hidden size {self.hidden} is not a multiple of {self.heads} heads")
        if self.decoder is not None and self.hidden % self.decoder.heads:
            raise ConfigError(
                f"hidden size {self.hidden} is not a multiple of {self.decoder.heads} decoder heads"
            )
        if self.decoder is not None and not 0 <= self.decoder.start < self.vocab_size:
            raise ConfigError(
                f"decoder start token {self.decoder.start} is outside of the vocabulary of "
                f"{self.vocab_size}"
            )
        for name in ("dropout", "attention_dropout"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise ConfigError(f"{name} must be in [0, 1), not {getattr(self, name)}")
        if not 0 <= self.task < max(self.tasks, 1):
            raise ConfigError(
                f"task {self.task} is not one of the {self.tasks} tasks of this model"
                if self.tasks
                else f"task {self.task} needs a model with a task embedding (ERNIE 2.0)"
            )
        names = [name for name, _ in self.channels]
        if len(set(names)) < len(names) or any(rows < 1 for _, rows in self.channels):
            raise ConfigError(f"channels need a name of their own and rows: {self.channels}")
        if not 0.0 < self.norm_eps < 1.0:
            raise ConfigError(f"norm_eps must be in (0, 1), not {self.norm_eps}")

    def _check_shapes(self) -> None:
        """One shape for each block, and none where all are those of a uniform model."""
        if len(self.shapes) != self.layers:
            raise ConfigError(f"{len(self.shapes)} shapes for {self.layers} layers: give one each")
        first = self.shapes[0]
        if len(set(self.shapes)) == 1 and first.attended == self.hidden:
            object.__setattr__(self, "heads", first.heads)
            object.__setattr__(self, "feed_forward", first.feed_forward)
            object.__setattr__(self, "shapes", ())
        elif self.sharing != "none":
            raise ConfigError(
                f"layers of different shapes cannot share weights (sharing = {self.sharing}): "
                "leave shapes or sharing out"
            )

    @property
    def layer_shapes(self) -> tuple[LayerShape, ...]:
        """The shape of every block."""
        width = self.hidden // self.heads
        one = LayerShape(heads=self.heads, head_width=width, feed_forward=self.feed_forward)
        return self.shapes or (one,) * self.layers

    @property
    def products(self) -> tuple[int, ...]:
        """Weights of the matrices of each block, by which every token is multiplied."""
        return tuple(
            4 * self.hidden * one.attended + 2 * self.hidden * one.feed_forward
            for one in self.layer_shapes
        )

    def to_json(self) -> dict[str, object]:
        """Plain values, as our own section of config.json has them; `shapes` if there are any."""
        values = asdict(self)
        shapes = values.pop("shapes")
        return {
            **values,
            "positions": self.positions.to_json(),
            "channels": dict(self.channels),
            **({"shapes": list(shapes)} if shapes else {}),
        }

    @property
    def form(self) -> Form:
        """What a model of this shape is: it decides how texts are written, if they can be.

        "decoder": an encoder with a decoder (BART); "queries": rows that ask for tokens they do not
        see (XLNet); "causal": rows see what stands before them (GPT); else "bidirectional".
        """
        if self.decoder is not None:
            return "decoder"
        if isinstance(self.positions, SegmentRecurrent):
            return "queries"
        return "causal" if self.causal else "bidirectional"

    @property
    def causal(self) -> bool:
        """Whether the rows of the encoder see only what stands before them."""
        return self.sees == "before"

    @property
    def reads_segments(self) -> bool:
        """Whether the model tells the two texts of a pair apart by their segment."""
        return self.segments > 1

    @property
    def longest(self) -> int | None:
        """The longest text the positions can hold, None if there is no limit."""
        return self.positions.longest
