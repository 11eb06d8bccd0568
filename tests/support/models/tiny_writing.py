"""Pairs that a tiny model can learn to write in seconds, for tests of models that write."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from tiny_models import shrunk
from tiny_tasks import SPECIAL, word_tokenizer

from bertsmith.config import validated
from bertsmith.folders.extras import Extras
from bertsmith.folders.write import save_model
from bertsmith.labeled.pairs.pairs import SentenceData
from bertsmith.labeled.pairs.splits import PairSplits
from bertsmith.models.build import build
from bertsmith.training.kinds.write.learner import WriteJob
from bertsmith.training.kinds.write.recipe import WriteRecipe

LETTERS = [f"w{number}" for number in range(20)]


def tiny_writing_folder(
    path: Path,
    *,
    hidden: int = 32,
    heads: Sequence[str] = ("masked_lm",),
    writes: dict[str, Any] | None = None,
    **shape: Any,
) -> str:
    """An untrained BERT folder with a head over twenty words."""
    spec = shrunk("bert", vocab_size=len(SPECIAL) + len(LETTERS), hidden=hidden, heads=2, rows=64)
    spec = replace(spec, **shape)
    model = build("bert", spec, heads=heads, generator=torch.Generator().manual_seed(1))
    extras = Extras() if writes is None else Extras(json={"writes": writes})
    save_model(model, word_tokenizer(LETTERS), path, extras=extras)
    return str(path)


def reversals(count: int, *, words: int = 4, seed: int = 0) -> list[tuple[str, str]]:
    """Different texts, and the same words in reverse."""
    rng = random.Random(seed)
    found: dict[str, str] = {}
    while len(found) < count:
        text = rng.choices(LETTERS, k=words)
        found[" ".join(text)] = " ".join(reversed(text))
    return list(found.items())


def alike(count: int, seed: int = 0) -> list[tuple[str, str]]:
    """Pairs of texts with the same words in another order; every fourth shares its first text."""
    rng = random.Random(seed)
    pairs: list[tuple[str, str]] = []
    while len(pairs) < count:
        words = rng.sample(LETTERS, k=rng.randint(3, 6))
        other = rng.sample(words, k=len(words))
        if words == other:
            continue
        pairs.append((" ".join(words), " ".join(other)))
        if len(pairs) % 4 == 3:
            pairs.append((" ".join(words), " ".join([*words[1:], words[0]])))
    return pairs[:count]


def pair_data(pairs: Sequence[tuple[str, str]], source: str = "pairs.tsv") -> SentenceData:
    return SentenceData(
        source=source,
        kind="pairs",
        why="as set",
        rows=list(pairs),
        lines=list(range(1, len(pairs) + 1)),
    )


def writing_job(
    model: str, task: str, *, sections: dict[str, Any], out: Path | None = None, rows: int = 40
) -> WriteJob:
    """A job on planted pairs."""
    base: dict[str, Any] = {"encoder": {"dropout": 0.0}, "length": {"max_length": 32}}
    if task == "similar":
        base["similarity"] = {}
    recipe = validated(WriteRecipe, {**base, **sections}, "the test")
    pairs = alike(rows) if task == "similar" else reversals(rows)
    return WriteJob(
        recipe=recipe,
        task=task,
        model=model,
        rows=PairSplits(train=pair_data(pairs[8:]), dev=pair_data(pairs[:8])),
        out=out,
    )
