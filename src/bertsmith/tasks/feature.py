"""One passage of an example through the encoder, and what is known of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bertsmith.labeled.example import Example
from bertsmith.tasks.length import LengthSettings, encodings, pair_encodings
from bertsmith.text.encoding import Encoding, Ints
from bertsmith.text.tokenizer import Tokenizer

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Feature:
    """Tokens that go through the model together.

    An example has one Feature, or several: windows of a long text, the choices of a question.
    `example` is its number in the list that the features were made of. `target` is what the task
    makes of the label, None if there is none. `at` (U,) are the tokens that a head on rows reads;
    `units` (U,) which unit of the example each of them stands for. `meta` (n,) are the numbers of
    further columns that the head reads, `auxiliary` (m,) those that it is to learn, nan: none.
    `channels`, each (L,) or (L, n), `positions` (L,) and the boolean `visible` (L, L) are for
    models that read more than ids and segments. `vector` (W,) is what a frozen encoder gave for
    the tokens, if it was computed before.
    """

    encoding: Encoding
    example: int
    target: NDArray[np.generic] | None = None
    at: Ints | None = None
    units: Ints | None = None
    meta: Numbers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    auxiliary: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, dtype=np.float32))
    channels: Mapping[str, Ints] = field(default_factory=dict)
    positions: Ints | None = None
    visible: NDArray[np.bool_] | None = None
    vector: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return len(self.encoding)


Targets = Sequence[NDArray[np.generic] | None]


def text_features(
    examples: Sequence[Example],
    tokenizer: Tokenizer,
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
    """How many tokens of each example no passage holds."""
    cut = [0] * examples
    for feature in features:
        cut[feature.example] = max(cut[feature.example], feature.encoding.total_cut)
    return cut
