"""Fine-tuning that learns the mean of long texts from drawn tokens."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_finetuning import RECIPE, straight_and_cut, tiny_folder, tiny_job, weights

from bertsmith.runtime.predictor import load_predictor
from bertsmith.training.finetune.finetune import finetune
from bertsmith.training.finetune.recipe import FinetuneRecipe, TextVectorSettings
from bertsmith.training.finetune.record import regulariser


def drawing(tokens: int) -> FinetuneRecipe:
    """Texts have 5 to 11 tokens with their ends."""
    vector = TextVectorSettings(pooling="mean", drawn=tokens)
    return RECIPE.model_copy(update={"vector": vector})


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_folder(tmp_path_factory.mktemp("source") / "model")


def test_a_run_that_draws_tokens_learns_and_goes_on_to_the_same_bits(
    source: str, tmp_path: Path
) -> None:
    done = straight_and_cut(source, tmp_path, drawing(3))
    assert done.dev_figures is not None
    assert done.dev_figures["accuracy"] > 0.8
    finetune(tiny_job(source, tmp_path / "whole", recipe=drawing(0)))
    assert weights(tmp_path / "whole") != weights(tmp_path / "straight")


@pytest.mark.parametrize(("tokens", "told"), [(3, True), (0, False)])
def test_the_report_names_it(source: str, tmp_path: Path, tokens: int, told: bool) -> None:
    recipe = drawing(tokens)
    finetune(tiny_job(source, tmp_path / "out", recipe=recipe))
    said = regulariser(load_predictor(tmp_path / "out"), recipe)
    assert ("longer texts as the mean of 3 drawn tokens" in said) == told
