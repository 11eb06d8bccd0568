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
class Spec:
    """The shape of an encoder; the defaults are BERT-base, uncased."""

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
    decoder: DecoderSpec | None = None

    def __post_init__(self) -> None:
        for name in ("vocab_size", "hidden", "layers", "heads", "feed_forward", "embedding"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.hidden % self.heads:
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

    def to_json(self) -> dict[str, object]:
        """Plain values, as our own section of config.json has them."""
        return {
            **asdict(self),
            "positions": self.positions.to_json(),
            "channels": dict(self.channels),
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
