"""The rate and the dropout of fine-tuning when nobody gives any."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tiny_finetuning import RECIPE, SHORT, tiny_folder, tiny_job

from bertsmith.folders.read import load_model
from bertsmith.training.default_rate import by_size, by_width
from bertsmith.training.kinds.labeled.learner import HEAD_ALONE, finetune
from bertsmith.training.kinds.labeled.recipe import (
    EncoderSettings,
    FinetuneRecipe,
    TextVectorSettings,
)
from bertsmith.training.recipe import RatedOptimizer


def used(out: Path) -> float:
    """The rate that a finished run tells, which is also the highest of its log."""
    told = float(json.loads((out / "result.json").read_text())["rate"])
    lines = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    assert 0.5 * told < max(line["rate"] for line in lines if line["kind"] == "train") <= told
    return told


def auto(base: FinetuneRecipe = SHORT, **changes: object) -> FinetuneRecipe:
    return base.model_copy(update={"optimizer": RatedOptimizer(), **changes})


@pytest.mark.parametrize(
    ("hidden", "rate"), [(128, 3e-4), (256, 1.5e-4), (384, 1e-4), (768, 5e-5), (1024, 3.8e-5)]
)
def test_wider_models_learn_at_lower_rates(hidden: int, rate: float) -> None:
    assert by_width(hidden) == pytest.approx(rate, rel=1e-12)


def test_longer_vectors_want_a_lower_rate() -> None:
    vectors = np.full((3, 30), -0.5, dtype=np.float32)
    assert by_size(vectors) == pytest.approx(0.3 / 15)
    assert by_size(10 * vectors) == pytest.approx(0.3 / 150)
    assert np.isfinite(by_size(0 * vectors))


def test_a_run_without_a_rate_takes_that_of_its_width(source: str, tmp_path: Path) -> None:
    finetune(tiny_job(source, tmp_path, recipe=auto()))
    assert used(tmp_path) == by_width(32)


def test_a_rate_that_is_given_is_taken(source: str, tmp_path: Path) -> None:
    finetune(tiny_job(source, tmp_path, recipe=SHORT))
    assert used(tmp_path) == SHORT.optimizer.lr


@pytest.mark.parametrize("pooling", ["mean", "published", "attention"])
def test_a_head_alone_learns_at_a_rate_of_its_own(
    source: str, tmp_path: Path, pooling: str
) -> None:
    recipe = auto(
        RECIPE,
        encoder=EncoderSettings(frozen=True),
        vector=TextVectorSettings(pooling=pooling),  # type: ignore[arg-type]
    )
    job = tiny_job(source, tmp_path, recipe=recipe)
    first = finetune(job)
    rate = used(tmp_path)
    if pooling == "mean":
        assert rate > 2 * by_width(32), "the vectors of this model are short"
    else:
        assert rate == HEAD_ALONE
    again = finetune(job)  # a finished run finds the same rate, or it would be refused
    assert again.dev_figures == first.dev_figures


@pytest.mark.parametrize(
    ("own", "wanted", "expected"), [(0.0, None, 0.1), (0.3, None, 0.3), (0.3, 0.0, 0.0)]
)
def test_a_model_without_dropout_gets_some_unless_none_is_asked_for(
    tmp_path: Path, own: float, wanted: float | None, expected: float
) -> None:
    source = tiny_folder(tmp_path / "source")
    config = Path(source) / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "hidden_dropout_prob": own}))
    config.with_name("hashes.json").unlink()  # the change is ours
    recipe = SHORT.model_copy(update={"encoder": EncoderSettings(dropout=wanted)})
    finetune(tiny_job(source, tmp_path / "out", recipe=recipe))
    assert load_model(tmp_path / "out").model.spec.dropout == expected
