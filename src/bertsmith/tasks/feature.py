"""Feature: one encoded passage of an example."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bertsmith.labeled.example import Example
from bertsmith.tasks.length import LengthSettings, encodings, pair_encodings
from bertsmith.text.encoding import Encoding, FieldEncoder, Ints

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Feature:
    """One passage: tokens that pass through the model together.

    An example has one feature, or several: windows of a long text, the choices of a question.
    `example` is its number in the list of examples, `target` the loss target, None if unlabeled.
    Training numbers the examples of a step anew; `number` is that in the list of all examples,
    whatever the epoch and the order.
    `at` (U,) are the tokens that a head on rows reads, `units` (U,) the units of the example they
    represent. `meta` (n,) are the ids of further columns that the head reads, `auxiliary` (m,) the
    targets of further columns, nan: none. `channels`, each (L,) or (L, n), `positions` (L,) and the
    boolean `visible` (L, L) are for models that read more than ids and segments. `vector` (W,), or
    `layers` (n, L, D) where single rows are read, is the cached output of a frozen encoder.
    """

    encoding: Encoding
    example: int
    number: int = -1  # -1: `example`
    target: NDArray[np.generic] | None = None
    at: Ints | None = None
    units: Ints | None = None
    meta: Numbers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    auxiliary: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, dtype=np.float32))
    channels: Mapping[str, Ints] = field(default_factory=dict)
    positions: Ints | None = None
    visible: NDArray[np.bool_] | None = None
    vector: NDArray[np.float32] | None = None
    layers: NDArray[np.float32] | None = None

    def __post_init__(self) -> None:
        if self.number < 0:
            object.__setattr__(self, "number", self.example)

    def __len__(self) -> int:
        return len(self.encoding)


Targets = Sequence[NDArray[np.generic] | None]


def text_features(
    examples: Sequence[Example],
    tokenizer: FieldEncoder,
    lengths: LengthSettings,
    targets: Targets,
    *,
    bi_encoder: bool = False,
) -> list[Feature]:
    """The passages of each example; `targets` has an entry for each of them.

    With `bi_encoder`, each of the two texts of an example is a passage by itself.
    """
    encode = pair_encodings if bi_encoder else encodings
    passages = encode([example.texts for example in examples], tokenizer, lengths)
    return [
        Feature(encoding=part, example=number, target=target)
        for number, (parts, target) in enumerate(zip(passages, targets, strict=True))
        for part in parts
    ]


def tokens_cut(features: Sequence[Feature], examples: int) -> list[int]:
    """The number of truncated tokens of each example."""
    cut = [0] * examples
    for feature in features:
        cut[feature.example] = max(cut[feature.example], feature.encoding.total_cut)
    return cut
