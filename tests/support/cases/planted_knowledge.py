"""Rows whose labels only a knowledge graph, or only a channel of tags, can tell."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import torch
from tiny_models import shrunk
from tiny_tasks import SPECIAL, row, word_tokenizer

from bertsmith.folders.write import save_model
from bertsmith.labeled.example import Example, Label
from bertsmith.models.build import build
from bertsmith.training.kinds.labeled.learner import FinetuneJob
from bertsmith.training.kinds.labeled.recipe import (
    EncoderSettings,
    FinetuneRecipe,
    PlanSettings,
)
from bertsmith.training.kinds.labeled.rows import LabeledRows
from bertsmith.training.recipe import RatedOptimizer

FRONTS = [f"{a}{b}{c}" for a in "bdfgk" for b in "aeio" for c in "lmn"]
BACKS = [f"{a}{b}{c}" for a in "prstv" for b in "aeiou" for c in "kx"]
KINDS = {"fruit": "yes", "stone": "no"}
NOISE = ["we", "saw", "one", "today", "near", "town", "again", "there"]
RECIPE = FinetuneRecipe(
    plan=PlanSettings(epochs=3, batch=16),
    optimizer=RatedOptimizer(lr=2e-3),
    encoder=EncoderSettings(dropout=0.0),
)


def planted_folder(path: Path) -> str:
    """An untrained model of 2 layers of 64 whose vocabulary divides every name in two pieces."""
    words = [*NOISE, *KINDS, "is", "a", *FRONTS, *(f"##{back}" for back in BACKS)]
    spec = shrunk("bert", vocab_size=len(SPECIAL) + len(words), hidden=64, heads=2, rows=64)
    spec = replace(spec, dropout=0.0, attention_dropout=0.0)
    model = build("bert", spec, generator=torch.Generator().manual_seed(1))
    save_model(model, word_tokenizer(words), path)
    return str(path)


def planted_names(seed: int = 0) -> list[tuple[str, str]]:
    """3,000 names, in random order, each with its kind."""
    names = [front + back for front in FRONTS for back in BACKS]
    rng = random.Random(seed)
    rng.shuffle(names)
    return [(name, rng.choice(list(KINDS))) for name in names]


def graph_rows(names: list[tuple[str, str]]) -> list[Example]:
    """One text per name; its label is the kind that the graph alone knows."""
    rng = random.Random(7)
    found = []
    for number, (name, kind) in enumerate(names):
        words = rng.choices(NOISE, k=4)
        words.insert(rng.randrange(5), name)
        found.append(row(number, [" ".join(words)], Label(KINDS[kind])))
    return found


def write_graph(path: Path, names: list[tuple[str, str]]) -> str:
    lines = [f"{name}\tis a\t{kind}\n" for name, kind in names]
    path.write_text("".join(lines), encoding="utf-8")
    return str(path)


def channel_rows(count: int, seed: int) -> list[Example]:
    """Random words; the label is whether a word is tagged HIT, in the form of a role tagger."""
    rng = random.Random(seed)
    found = []
    for number in range(count):
        words = rng.choices(NOISE, k=6)
        tags = rng.choices(["O", "B-MISS"], k=6)
        label = rng.choice(["yes", "no"])
        if label == "yes":
            tags[rng.randrange(6)] = "B-HIT"
        cell = json.dumps({"words": words, "verbs": [{"tags": tags}]})
        example = row(number, [" ".join(words)], Label(label))
        found.append(replace(example, extra={"roles": cell}))
    return found


def planted_job(source: str, out: Path | None, rows: list[Example], dev: int) -> FinetuneJob:
    """A job that holds the last `dev` rows out."""
    return FinetuneJob(
        recipe=RECIPE,
        task="classify",
        model=source,
        rows=LabeledRows(train=rows[:-dev], dev=rows[-dev:]),
        out=out,
    )
