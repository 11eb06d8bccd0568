"""Tiny streams of words and models of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertsmith.classic.gpt.settings import GptSettings
from bertsmith.classic.neural.settings import NEURAL_KINDS, NeuralSettings
from bertsmith.config import validated


@dataclass(frozen=True)
class TinyWords:
    """A stream of words in memory."""

    ids: NDArray[np.int32]
    starts: NDArray[np.int64]
    documents: NDArray[np.int64]
    words: tuple[str, ...]
    counts: NDArray[np.int64]


def tiny_words(
    lines: Sequence[Sequence[int]], *, vocabulary: int, documents: Sequence[int] = ()
) -> TinyWords:
    """Lines of ids; `documents` are the first lines of all but the first document."""
    ids = np.array([word for line in lines for word in line], dtype=np.int32)
    return TinyWords(
        ids=ids,
        starts=np.cumsum([0, *(len(line) for line in lines)], dtype=np.int64),
        documents=np.array([0, *documents, len(lines)], dtype=np.int64),
        words=("<unk>", *(f"w{number}" for number in range(1, vocabulary))),
        counts=np.bincount(ids, minlength=vocabulary).astype(np.int64),
    )


def random_words(
    count: int, *, vocabulary: int = 12, longest: int = 9, seed: int = 0, every: int = 5
) -> TinyWords:
    """Lines in which a word mostly follows from the one before; `every` so many a new document."""
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(count):
        line = [int(rng.integers(1, vocabulary))]
        for _ in range(int(rng.integers(0, longest))):
            follows = line[-1] * 3 % (vocabulary - 1) + 1
            line.append(follows if rng.random() < 0.8 else int(rng.integers(1, vocabulary)))
        lines.append(line)
    return tiny_words(lines, vocabulary=vocabulary, documents=range(every, count, every))


def tiny_settings(kind: str, **changes: Any) -> NeuralSettings:
    """Settings of a model of a few numbers, without dropout."""
    tree: dict[str, Any] = {
        "width": 8,
        "hidden": 16,
        "dropout": 0.0,
        "softmax": {"kind": "full"},
        "plan": {"steps": 12, "lines": 6, "lanes": 3, "window": 4, "evaluations": 3},
        "save": {"every": 4, "seconds": None},
    }
    return validated(NEURAL_KINDS[kind], {**tree, **changes}, "test")


def tiny_gpt(**changes: Any) -> GptSettings:
    """Settings of a causal model of a few numbers."""
    tree: dict[str, Any] = {
        "model": {
            "layers": 2,
            "hidden": 16,
            "heads": 2,
            "init": "random",
            "positions": 8,
        },
        "plan": {"steps": 12, "lines": 6, "window": 8, "evaluations": 3},
        "save": {"every": 4, "seconds": None},
    }
    return validated(GptSettings, {**tree, **changes}, "test")
