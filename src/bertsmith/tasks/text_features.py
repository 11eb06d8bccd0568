"""Features of tasks that read a text as a whole: one label, several, or a number."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from bertsmith.data.examples.example import Example
from bertsmith.tasks.feature import Feature
from bertsmith.tasks.length import LengthSettings, encodings
from bertsmith.text.tokenizer import Tokenizer

Aim = Callable[[Example], NDArray[np.generic] | None]


def text_features(
    examples: Sequence[Example], tokenizer: Tokenizer, lengths: LengthSettings, aim: Aim
) -> list[Feature]:
    """The passages of each example; `aim` gives the target of one."""
    found: list[Feature] = []
    passages = encodings([example.texts for example in examples], tokenizer, lengths)
    for number, (example, parts) in enumerate(zip(examples, passages, strict=True)):
        target = aim(example)
        found += [Feature(encoding=part, example=number, target=target) for part in parts]
    return found


def tokens_cut(features: Sequence[Feature], examples: int) -> list[int]:
    """How many tokens of each example no passage holds."""
    cut = [0] * examples
    for feature in features:
        cut[feature.example] = max(cut[feature.example], feature.encoding.total_cut)
    return cut
