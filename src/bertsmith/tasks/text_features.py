"""Features of tasks that read a text as a whole: one label, several, or a number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bertsmith.labeled.example import Example
from bertsmith.tasks.feature import Feature
from bertsmith.tasks.length import LengthSettings, encodings
from bertsmith.text.tokenizer import Tokenizer

Targets = Sequence[NDArray[np.generic] | None]


def text_features(
    examples: Sequence[Example], tokenizer: Tokenizer, lengths: LengthSettings, targets: Targets
) -> list[Feature]:
    """The passages of each example; `targets` has an entry for each of them."""
    passages = encodings([example.texts for example in examples], tokenizer, lengths)
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
