"""What is tried: layers, poolings, corrections and dimensions, and which of them is simpler."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from bertsmith.models.sentence_spec import DenseLayer, PoolingKind, SentenceSettings

Correction = Literal["none", "whitening", "flow"]
_LINEAR: tuple[PoolingKind, ...] = ("mean", "first")  # poolings of which layers can be mixed
_CORRECTIONS: tuple[Correction, ...] = ("none", "whitening", "flow")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One way to make a vector; `layers` are averaged, 0 being the embeddings.

    `own`: exactly as the folder has it, dense layers included.
    """

    layers: tuple[int, ...]
    pooling: PoolingKind
    correction: Correction = "none"
    dimension: int
    own: bool = False
    dense: tuple[DenseLayer, ...] = field(default=(), compare=False, repr=False)

    @property
    def name(self) -> str:
        """In words: "layers 1 + 6, mean, whitening to 128"."""
        if self.own:
            return "as the folder has it"
        layers = " + ".join("embeddings" if one == 0 else str(one) for one in self.layers)
        word = "layers" if len(self.layers) > 1 else "layer"
        base = f"{word} {layers}" if self.layers != (0,) else "embeddings"
        corrected = "" if self.correction == "none" else f", {self.correction} to {self.dimension}"
        return f"{base}, {self.pooling}{corrected}"

    def complexity(self, last: int, usual: PoolingKind) -> tuple[int, int, int, int, int]:
        """Smaller is simpler: the folder as it is, no correction, the last layer, its pooling."""
        depth = 0 if self.layers == (last,) else 1 if len(self.layers) == 1 else 2
        return (
            0 if self.own else 1,
            _CORRECTIONS.index(self.correction),
            depth,
            0 if self.pooling == usual else 1,
            self.dimension,
        )

    def settings(self, own: SentenceSettings, last: int) -> SentenceSettings:
        """The settings of a folder that makes these vectors."""
        if self.own:
            return own
        mix = None
        if self.layers != (last,):
            mix = tuple(float(number in self.layers) for number in range(last + 1))
        return replace(
            own,
            pooling=(self.pooling,),
            dense=self.dense,
            layer_mix=mix,
            normalize=own.normalize or self.correction != "none",
        )


def bases(
    last: int, poolings: tuple[PoolingKind, ...]
) -> list[tuple[tuple[int, ...], PoolingKind]]:
    """Layers and poolings: every layer, first and last, the last two."""
    single = [(number,) for number in range(last, -1, -1)]
    mixes = [(1, last), (last - 1, last)] if last > 1 else []
    mixes = list(dict.fromkeys(mixes))
    return [
        (layers, pooling)
        for pooling in poolings
        for layers in [*single, *(mixes if pooling in _LINEAR else [])]
    ]


def dimensions(width: int, rank: int) -> list[int]:
    """The dimensions that whitening is tried with: all, and halves from 512 down."""
    tried = [
        rank,
        *(size for size in (512, 256, 128, 64) if size < rank and size <= width // 2 + 1),
    ]
    return list(dict.fromkeys(tried))
