"""Tiny encoders of words and rows with planted answers that a head on frozen features can learn."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
from elmo_fixture import write_published

from bertsmith.classic.elmo.folder import build_elmo, save_elmo
from bertsmith.classic.elmo.learner import draw_elmo
from bertsmith.classic.elmo.model import ElmoModel
from bertsmith.classic.elmo.settings import ElmoSettings
from bertsmith.classic.stream.splitting import SplitRule
from bertsmith.files.word_vectors.writing import write_word_vectors
from bertsmith.models.word_encoders.elmo_spec import ElmoSpec

NAMES = ("Anna", "Berta", "Clara", "Dora", "Emma")
OTHERS = ("sees", "likes", "the", "dog", "cat", "a", "house", "and")
GOOD, BAD = ("lovely", "great", "fine"), ("awful", "boring", "bad")


def elmo_folder(folder: Path, *, segmenter: str = "character") -> Path:
    """A published ELMo with random weights, and how texts are split."""
    write_published(folder)
    rule = {"split": "words", "lower": False, "segmenter": segmenter, "pieces": False}
    (folder / "splitter.json").write_text(json.dumps(rule), encoding="utf-8")
    return folder


def language_models(folder: Path) -> Path:
    """A folder of `bertsmith lm train --kind elmo` with random weights, wide enough to learn on."""
    shape = ElmoSpec(length=16, filters=((1, 16), (2, 32), (3, 32)), hidden=40, projection=32)
    settings = ElmoSettings(model=shape)
    module = build_elmo(settings, np.ones(9, dtype=np.int64))
    draw_elmo(module, settings)
    words = ("<unk>", *(f"word{number}" for number in range(7)))
    rule = SplitRule()
    save_elmo(ElmoModel(settings=settings, words=words, module=module, rule=rule), folder)
    return folder


def vector_file(path: Path, *, left_out: tuple[str, ...] = ()) -> Path:
    """Random vectors of the planted words in word2vec's text form."""
    words = [word for word in (*NAMES, *OTHERS, *GOOD, *BAD) if word not in left_out]
    matrix = np.random.default_rng(0).standard_normal((len(words), 12)).astype(np.float32)
    write_word_vectors(path, words, matrix)
    return path


def tagged_rows(folder: Path, *, seed: int = 0) -> Path:
    """Train, dev and test files of sentences in which names are persons."""
    drawn = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    for name, count in (("train", 120), ("dev", 30), ("test", 40)):
        lines = []
        for _ in range(count):
            for _ in range(drawn.randint(3, 8)):
                person = drawn.random() < 0.3
                word = drawn.choice(NAMES if person else OTHERS)
                lines.append(f"{word}\t{'B-PER' if person else 'O'}\n")
            lines.append("\n")
        (folder / f"{name}.conll").write_text("".join(lines), encoding="utf-8")
    return folder


def labeled_rows(folder: Path, *, seed: int = 0) -> Path:
    """Train, dev and test files of texts with a word that gives the label away."""
    drawn = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    for name, count in (("train", 480), ("dev", 40), ("test", 60)):
        lines = ["text\tlabel\n"]
        for _ in range(count):
            good = drawn.random() < 0.5
            words = [drawn.choice(OTHERS) for _ in range(drawn.randint(2, 6))]
            words.insert(drawn.randrange(len(words)), drawn.choice(GOOD if good else BAD))
            lines.append(f"{' '.join(words)}\t{'good' if good else 'bad'}\n")
        (folder / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")
    return folder
