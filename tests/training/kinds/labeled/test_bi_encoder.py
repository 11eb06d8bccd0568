"""The bi-encoder: a number for a pair from the cosine of two vectors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_finetuning import RECIPE, rows, tiny_folder, tiny_job
from tiny_tasks import row, word_tokenizer

from bertsmith.config import changed
from bertsmith.errors import ConfigError
from bertsmith.labeled.example import Example, ScoreTarget
from bertsmith.runtime.engines.engine import EagerEngine
from bertsmith.runtime.load_predictor import load_predictor
from bertsmith.runtime.predictor import answer_on
from bertsmith.tasks.length import LengthSettings, pair_encodings
from bertsmith.tasks.model.columns import AuxiliarySettings
from bertsmith.tasks.model.layers import CosineHead, HeadSettings
from bertsmith.training.kinds.labeled.learner import finetune
from bertsmith.training.kinds.labeled.recipe import FinetuneRecipe, TextVectorSettings
from bertsmith.training.kinds.labeled.record import head

PAIRS = [("red bird", "blue stone river"), ("tree", "tree house")]
LENGTHS = LengthSettings()


def pairs(count: int, seed: int) -> list[Example]:
    """How many of the birds in two texts are in both."""
    texts = [example.texts[0] for example in rows(2 * count, seed=seed)]
    return [
        row(n, [a, b], ScoreTarget(float(min(a.count("bird"), b.count("bird")))))
        for n, (a, b) in enumerate(zip(texts[::2], texts[1::2], strict=True))
    ]


def bi_encoder(**changes: Any) -> FinetuneRecipe:
    return changed(RECIPE, {"encoder.pair": "bi-encoder", "head.dropout": 0.0, **changes})


def test_each_text_is_encoded_by_itself() -> None:
    tokenizer = word_tokenizer()
    found = pair_encodings(PAIRS, tokenizer, LENGTHS)
    assert [[list(one.ids) for one in both] for both in found] == [
        [list(tokenizer.encode(text).ids) for text in pair] for pair in PAIRS
    ]
    cut = pair_encodings(PAIRS, tokenizer, LengthSettings(max_length=4))
    assert [[one.total_cut for one in both] for both in cut] == [[0, 1], [0, 0]]
    assert pair_encodings([], tokenizer, LENGTHS) == []


def test_the_head_scales_and_shifts_the_cosine() -> None:
    vectors = torch.randn(6, 5, generator=torch.Generator().manual_seed(0))
    head_ = CosineHead()
    with torch.no_grad():
        head_.scale.fill_(3.0)
        head_.shift.fill_(-1.0)
        found = head_(vectors)[:, 0]
    a, b = vectors[0::2].double(), vectors[1::2].double()
    cosine = (a * b).sum(1) / (a.norm(dim=1) * b.norm(dim=1))
    assert torch.allclose(found.double(), 3 * cosine - 1, atol=1e-5)
    assert torch.isfinite(head_(torch.zeros(2, 5))).all()


def test_a_folder_answers_alike_in_both_orders_and_on_an_engine(tmp_path: Path) -> None:
    source = tiny_folder(tmp_path / "source")
    train, dev = pairs(160, seed=3), pairs(40, seed=4)
    out = tmp_path / "out"
    done = finetune(tiny_job(source, out, "regress", recipe=bi_encoder(), train=train, dev=dev))
    assert done.dev_figures is not None
    assert done.dev_figures["spearman"] > 0.5
    predictor = load_predictor(out)
    assert head(predictor.model)["reads"].startswith("the cosine of two texts")
    turned = [replace(example, texts=example.texts[::-1]) for example in dev]
    there, back = (
        np.array([one.value for one in predictor.predict(some)]) for some in (dev, turned)
    )
    assert there.std() > 0
    assert np.abs(there - back).max() < 1e-4
    features, plain = predictor.answered(dev)
    encoder = predictor.model.model.encoder
    engine = EagerEngine(encoder, device=torch.device("cpu"), dtype=torch.float32)
    mine = answer_on(predictor.host, engine, predictor.model, features)
    assert np.allclose(np.array(mine.logits), np.array(plain.logits), atol=2e-5)


@pytest.mark.parametrize(
    ("texts", "said"), [(("red",), "a row has 1"), (("red", "blue", "tree"), "a row has 3")]
)
def test_rows_that_are_no_pairs_are_refused(texts: tuple[str, ...], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        pair_encodings([PAIRS[0], texts], word_tokenizer(), LENGTHS)


@pytest.mark.parametrize(
    ("task", "changes", "said"),
    [
        ("classify", {}, "the task is classify"),
        ("tag", {}, "the task is tag"),
        ("choose", {}, "the task is choose"),
        ("answer", {}, "the task is answer"),
        ("regress", {"head": HeadSettings()}, r"head\.dropout=0\.0"),
        ("regress", {"head": HeadSettings(dropout=0.0, layers=(8,))}, "nothing else"),
        ("regress", {"head": HeadSettings(dropout=0.0, wide=True)}, "nothing else"),
        ("regress", {"vector": TextVectorSettings(pooling="published")}, r"vector\.pooling"),
    ],
)
def test_what_does_not_fit_is_refused(
    tmp_path: Path, task: str, changes: dict[str, Any], said: str
) -> None:
    source = tiny_folder(tmp_path / "source")
    with pytest.raises(ConfigError, match=said):
        finetune(tiny_job(source, tmp_path / "out", task, recipe=bi_encoder(**changes)))


def test_auxiliary_targets_are_refused(tmp_path: Path) -> None:
    train = [replace(example, extra={"kind": "ab"[n % 2]}) for n, example in enumerate(pairs(8, 1))]
    recipe = bi_encoder(auxiliary={"kind": AuxiliarySettings()})
    job = tiny_job(tiny_folder(tmp_path / "source"), tmp_path / "out", "regress", recipe=recipe)
    with pytest.raises(ConfigError, match="nothing else"):
        finetune(replace(job, rows=replace(job.rows, train=train, dev=train)))


@pytest.mark.parametrize("other", [{"stride": 4}, {"budgets": (4, 9)}])
def test_windows_and_budgets_are_refused(other: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"at most length\.max_length tokens of each text"):
        pair_encodings(PAIRS, word_tokenizer(), LengthSettings(**other))
