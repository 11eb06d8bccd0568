"""Which vector of a text is read when nobody says which."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny_finetuning import RECIPE
from tiny_models import shrunk
from tiny_tasks import SPECIAL, TASK_WORDS, tiny_task_model, word_tokenizer

from bertsmith.folders.read import load_model
from bertsmith.folders.write import save_model
from bertsmith.models.build import build
from bertsmith.tasks.classify import Classify
from bertsmith.tasks.model.layers import HeadSettings
from bertsmith.tasks.model.text_vector import VectorSettings, vector_choices
from bertsmith.training.kinds.labeled.model import vector_settings
from bertsmith.training.kinds.labeled.record import head


@pytest.mark.parametrize(
    ("variant", "pooler", "expected"),
    [
        ("bert", True, "published"),
        ("bert", False, "mean"),  # the first token of such a model was taught nothing
        ("electra", False, "published"),  # its head has a layer of its own instead of a pooler
    ],
)
def test_auto_follows_what_the_folder_was_made_for(
    tmp_path: Path, variant: str, pooler: bool, expected: str
) -> None:
    words = len(SPECIAL) + len(TASK_WORDS)
    spec = replace(shrunk(variant, vocab_size=words, hidden=32, heads=2, rows=64), pooler=pooler)
    model = build(variant, spec, generator=torch.Generator().manual_seed(1))
    save_model(model, word_tokenizer(), tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert vector_settings(RECIPE, loaded).pooling == expected
    deep = RECIPE.model_copy(update={"head": HeadSettings(layers=(8,))})
    own = "first" if expected == "published" else expected
    assert vector_settings(deep, loaded).pooling == own


def test_every_choice_is_told_in_words_of_its_own() -> None:
    task = Classify(labels=("a", "b"))
    choices = [*vector_choices(2).values(), VectorSettings(pooling="published")]
    told = [head(tiny_task_model(task, vector=choice)) for choice in choices]
    assert len({one["reads"] for one in told}) == len(choices)
    assert [one["kind"] for one in told] == ["own"] * (len(choices) - 1) + ["published"]
