"""Rows of every kind that a tiny model can learn in seconds, for tests of sentence training."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tiny_models import shrunk
from tiny_tasks import SPECIAL, TASK_WORDS, word_tokenizer

from bertsmith.config import validated
from bertsmith.folders.write import save_model
from bertsmith.labeled.pairs.pairs import Kind, SentenceData
from bertsmith.models.build import build
from bertsmith.models.sentence_spec import SentenceSettings
from bertsmith.sentences.train.learner import SENTENCES, SentenceJob, SentenceSplits
from bertsmith.sentences.train.recipe import SentenceRecipe


def tiny_sentence_folder(path: Path, **settings: Any) -> str:
    """An untrained model folder that knows a dozen words."""
    words = len(SPECIAL) + len(TASK_WORDS)
    spec = shrunk("bert", vocab_size=words, hidden=32, heads=2, rows=64)
    model = build("bert", spec, generator=torch.Generator().manual_seed(1))
    save_model(model, word_tokenizer(), path, sentence=SentenceSettings(**settings))
    return str(path)


def sentences(number: int, seed: int = 0, *, longest: int = 6) -> list[str]:
    """Different texts of a few words."""
    rng = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < number:
        found[" ".join(rng.choices(TASK_WORDS, k=rng.randint(2, longest)))] = None
    return list(found)


def changed(text: str, rng: random.Random) -> str:
    """The same text in another order, with one more word."""
    words = [*text.split(), rng.choice(TASK_WORDS)]
    rng.shuffle(words)
    return " ".join(words)


def overlap(first: str, second: str) -> float:
    one, two = set(first.split()), set(second.split())
    return len(one & two) / len(one | two)


def sentence_rows(kind: Kind, number: int = 60, seed: int = 0) -> SentenceData:
    """Rows whose texts are alike if they share words."""
    rng = random.Random(seed)
    texts = sentences(number, seed)
    near = [changed(text, rng) for text in texts]
    far = [*texts[1:], texts[0]]
    targets: Any = None
    labels: tuple[str, ...] = ()
    rows: list[tuple[str, ...]]
    if kind == "texts":
        rows = [(text,) for text in texts]
    elif kind == "pairs":
        rows = list(zip(texts, near, strict=True))
    elif kind == "triplets":
        rows = [(a, p, n if n != p else texts[0]) for a, p, n in zip(texts, near, far, strict=True)]
    else:
        rows = [(text, near[at] if at % 2 else far[at]) for at, text in enumerate(texts)]
        targets = np.array([round(5 * overlap(*row), 1) for row in rows])
        if kind == "labels":
            labels = ("no", "yes")
            targets = np.array([float(at % 2) for at in range(number)])
    return SentenceData(
        source="rows.tsv",
        kind=kind,
        why="made so",
        rows=rows,
        lines=list(range(1, number + 1)),
        targets=targets,
        labels=labels,
    )


def tiny_recipe(kind: str, **sections: Any) -> SentenceRecipe:
    """A short run of an objective; sections override."""
    tree: dict[str, Any] = {
        "objective": {"kind": kind},
        "encoder": {"dropout": 0.1},
        "optimizer": {"lr": 1e-3},
        "plan": {"steps": 6, "batch": 12, "micro_tokens": 4_096, "evaluations": 2},
    }
    for name, section in sections.items():
        tree[name] = {**tree.get(name, {}), **section}
    return validated(SentenceRecipe, tree, "the test")


def tiny_job(model: str, kind: str, data: Kind, **more: Any) -> SentenceJob:
    """A job of an objective on rows of a kind, with scored pairs as dev rows."""
    recipe = more.pop("recipe", None) or tiny_recipe(kind, **more.pop("sections", {}))
    rows = SentenceSplits(train=sentence_rows(data), dev=sentence_rows("scores", 20, seed=5))
    job = SentenceJob(recipe=recipe, task=SENTENCES, model=model, rows=rows)
    sides = {name: more.pop(name) for name in ("train", "dev") if name in more}
    return replace(with_rows(job, **sides), **more)


def with_rows(job: SentenceJob, **sides: SentenceData | None) -> SentenceJob:
    """The job on other rows of some splits."""
    return replace(job, rows=replace(job.rows, **sides))
