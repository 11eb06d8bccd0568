"""A planted task, end to end: an encoder-decoder learns to reverse texts and writes new ones."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Literal

import numpy as np

import bertsmith
from bertsmith.corpus.build import build_corpus
from bertsmith.corpus.rows import RowsBatch
from bertsmith.objectives.denoise import DenoiseProgram
from bertsmith.objectives.noise.noised import Noised, arranged
from bertsmith.objectives.program import ProgramSettings
from bertsmith.objectives.source_target import GAIN, end_token
from bertsmith.text.learn import learn_vocabulary
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.training.pretrain.recipe import load_recipe

WORDS = "ant bee cat dog eel fox gnu hen ibis jay kiwi lark mole newt owl pig".split()  # noqa: SIM905
LENGTH = 8


def backwards(rows: RowsBatch) -> Noised:
    """The words of each text from last to first, between its special tokens."""
    near = np.arange(len(rows.ids))
    start, size = rows.starts[rows.texts], rows.sizes[rows.texts]
    near[rows.real] = (2 * start + size - 1 - near)[rows.real]
    return arranged(rows, near, np.zeros(len(near), dtype=bool))


class Backwards(ProgramSettings):
    """The encoder reads a text backwards, the decoder writes it as it was."""

    kind: Literal["backwards"] = "backwards"

    def make(self, tokenizer: Tokenizer) -> DenoiseProgram:
        return DenoiseProgram(backwards, end_token(tokenizer, self.kind))


def texts(count: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=LENGTH)) for _ in range(count)]


def test_unseen_texts_are_reversed_exactly(tmp_path: Path) -> None:
    known = texts(4000, 1)
    (tmp_path / "text.txt").write_text("\n\n".join(known), encoding="utf-8")
    tokenizer = learn_vocabulary(known, size=100, min_count=1)
    assert tokenizer.encode_batch(known[:1])[0].words.max() == LENGTH - 1
    build_corpus([tmp_path / "text.txt"], tokenizer, tmp_path / "shards", workers=1)
    base = load_recipe(
        "bart",
        [
            'model={layers=2, hidden=64, heads=2, positions=16, dropout=0.0, init="random"}',
            "input.max_length=10",
            "schedule.steps=240",
            "batch.sequences=128",
            "optimizer.lr=1e-2",
            "eval={held_out=0.02, every=1000}",
            "log={every=50, tensorboard=false}",
        ],
    )
    recipe = type(base)(**{**dict(base), "program": Backwards()})
    result = bertsmith.pretrain(recipe, tmp_path / "shards", tmp_path / "model")
    assert result.outcome.evaluation.losses[GAIN] > 1.0  # nats per token: the source is read
    unseen = [text for text in texts(100, 2) if text not in set(known)]
    sources = [" ".join(reversed(text.split())) for text in unseen]
    written = bertsmith.load(tmp_path / "model").generate(sources)
    exact = [one.text == text for one, text in zip(written, unseen, strict=True)]
    assert np.mean(exact) >= 0.95
