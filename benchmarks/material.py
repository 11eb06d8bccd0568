"""Texts to measure with, cut from Python's own documentation so that no data folder is needed."""

from __future__ import annotations

import random
from collections.abc import Callable

# Words a text for each length class; tokens come to about 1.6 times as many in this material.
LENGTHS: dict[str, Callable[[random.Random], int]] = {
    "short": lambda rng: rng.randint(4, 9),
    "mixed": lambda rng: max(3, min(200, int(rng.lognormvariate(3.0, 0.75)))),
    "long": lambda rng: rng.randint(170, 240),
}
COUNTS = {"short": 3000, "mixed": 1500, "long": 300}


def cut_texts(kind: str, count: int, seed: int = 0) -> list[str]:
    """`count` different runs of words from the documentation, of the lengths of that kind."""
    import pydoc_data.topics

    words = " ".join(pydoc_data.topics.topics.values()).split()
    # The rules of tables and headings are no text.
    plain = str.isalpha if kind == "short" else lambda word: any(c.isalnum() for c in word)
    words = [word for word in words if plain(word)]
    rng = random.Random(seed)
    texts: dict[str, None] = {}
    while len(texts) < count:
        length = LENGTHS[kind](rng)
        start = rng.randrange(len(words) - length)
        texts[" ".join(words[start : start + length])] = None
    return list(texts)
