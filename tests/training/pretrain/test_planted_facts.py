"""A planted task: which capital belongs to which country, asked in sentences never seen."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from tiny_tasks import word_tokenizer

from bertsmith.corpus.build import build_corpus
from bertsmith.corpus.rows import rows_of
from bertsmith.corpus.shards import open_corpus
from bertsmith.folders.write import save_model
from bertsmith.models import VARIANTS, Learned
from bertsmith.models.build import build
from bertsmith.models.variant import sized
from bertsmith.objectives.entities.wklm import REPLACED
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.training.pretrain.model import build_module
from bertsmith.training.pretrain.pretrain import Job, pretrain
from bertsmith.training.pretrain.recipe import load_recipe
from bertsmith.training.pretrain.workload import PretrainWorkload

KNOWN = (
    "{city} capital {country}",
    "{country} capital {city}",
    "{city} of {country}",
    "{country} has {city}",
    "in {country} is {city}",
    "{city} is in {country}",
)
UNSEEN = (
    "in {country} capital {city}",
    "{city} capital of {country}",
)
PAIRS = 200


def names(ends: str) -> list[str]:
    """Invented names; those with two ends are written in two tokens."""
    first = [f"{a}{b}{c}" for a in "bdfgklmnpr" for b in "aeiou" for c in "lnrs"]
    return [
        f"{one} {ends}" if number % 8 == 0 else f"{one}{ends}" for number, one in enumerate(first)
    ]


def facts() -> list[tuple[str, str]]:
    cities, countries = names("burg"), names("land")
    random.Random(3).shuffle(cities)
    return list(zip(cities, countries, strict=True))


def texts(templates: tuple[str, ...]) -> list[str]:
    return [one.format(city=city, country=land) for city, land in facts() for one in templates]


def planted(place: Path) -> tuple[Path, Path]:
    """A corpus of one text per document, and the cities as entities of one type."""
    known = texts(KNOWN)
    words = sorted({word for text in known for word in text.split()})
    (place / "text.txt").write_text("\n\n".join(known), encoding="utf-8")
    tokenizer = word_tokenizer(words)
    build_corpus([place / "text.txt"], tokenizer, place / "shards", workers=1)
    lines = [f"{city}\tcity\n" for city, _ in facts()]
    (place / "cities.tsv").write_text("".join(lines), encoding="utf-8")
    return place / "shards", place / "cities.tsv"


def start(tokenizer: Tokenizer, place: Path) -> str:
    """A model of one wide layer, drawn louder than usual: small ones learn sooner so."""
    spec = sized(VARIANTS["bert"].spec, 1, 128, heads=2)
    spec = replace(
        spec,
        vocab_size=tokenizer.vocab_size,
        feed_forward=1024,
        positions=Learned(rows=16),
        dropout=0.0,
        attention_dropout=0.0,
    )
    model = build("bert", spec, generator=torch.Generator().manual_seed(0))
    embeddings = model.encoder.embeddings
    with torch.no_grad():
        for parameter in model.encoder.blocks.parameters():
            parameter.mul_(6.0 if parameter.ndim == 2 else 1.0)
        embeddings.tokens.weight.mul_(25.0)
    save_model(model, tokenizer, place)
    return str(place)


def test_replaced_capitals_are_detected_in_sentences_never_seen(tmp_path: Path) -> None:
    assert len({city for city, _ in facts()}) == len(facts()) == PAIRS
    corpus, cities = planted(tmp_path)
    files = open_corpus(corpus)
    recipe = load_recipe(
        "wklm",
        [
            f"program.entities={cities}",
            "program.rate=0.5",
            "program.mlm=0",
            "input.max_length=12",
            "schedule.steps=540",
            "batch.sequences=256",
            "optimizer.lr=2e-3",
            "optimizer={eps=1e-8, clip=5.0, betas=[0.9, 0.95]}",
            "eval={held_out=0.0, every=1000}",
            "log={every=50, tensorboard=false}",
        ],
    )
    init = start(files.tokenizer(), tmp_path / "start")
    pretrain(Job(recipe=recipe, corpus=corpus, out=tmp_path / "model", init=init))
    program = PretrainWorkload(recipe, files).program
    module = build_module(recipe, files, program, init=tmp_path / "model").eval()
    batch = program.prepare(rows_of(files.tokenizer().encode_batch(texts(UNSEEN)), seed=5))
    with torch.no_grad():
        _, scores = program.losses(module, batch)
    labels = batch.texts.targets[REPLACED].of
    assert len(labels) == PAIRS * len(UNSEEN)
    assert 0.45 < np.mean(labels.tolist()) < 0.55
    assert int(scores[REPLACED].correct) / scores[REPLACED].count >= 0.95
