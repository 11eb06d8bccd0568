"""Fine-tuning a model with a task embedding: the chosen task is trained, stored and used."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_finetuning import SHORT, rows, tiny_job
from tiny_models import randomized, shrunk
from tiny_tasks import SPECIAL, TASK_WORDS, word_tokenizer

import bertsmith
from bertsmith.errors import ConfigError
from bertsmith.folders.read import load_model
from bertsmith.folders.write import save_model
from bertsmith.models.build import build
from bertsmith.nn.inputs import Inputs
from bertsmith.training.kinds.labeled.learner import finetune
from bertsmith.training.kinds.labeled.recipe import EncoderSettings, FinetuneRecipe

TEXTS = ["red stone", "small round river", "blue"]


def folder(path: Path, tasks: int = 4) -> str:
    spec = shrunk("ernie", vocab_size=len(SPECIAL) + len(TASK_WORDS), hidden=32, heads=1, rows=64)
    save_model(randomized(build("ernie", replace(spec, tasks=tasks))), word_tokenizer(), path)
    return str(path)


def recipe(task: int | None) -> FinetuneRecipe:
    return SHORT.model_copy(update={"encoder": EncoderSettings(dropout=0.0, task=task)})


@pytest.mark.parametrize("task", ["classify", "tag"])
def test_the_chosen_task_is_trained_stored_and_predicted_with(task: str, tmp_path: Path) -> None:
    source = folder(tmp_path / "m")
    done = finetune(tiny_job(source, tmp_path / "out", task, recipe=recipe(2)))
    assert done.finished is not None
    stored = load_model(tmp_path / "out").model
    assert stored.spec.task == 2
    assert json.loads((tmp_path / "out" / "config.json").read_text())["task_type_id"] == 2
    # Rows of other tasks got no gradient (decay alone moved them, all by one factor).
    name = "encoder.embeddings.channel_tasks.weight"
    before = load_model(source).model.get_parameter(name)
    after = stored.get_parameter(name)
    ratio = (after / before).detach()
    for other in (0, 1, 3):
        torch.testing.assert_close(ratio[other], ratio[0, 0].expand(32), rtol=1e-4, atol=1e-4)
    assert float((ratio[2] - ratio[0, 0]).abs().max()) > 1e-3
    texts = [one.texts[0] for one in rows(6, task, seed=9)]
    found = [one.value for one in bertsmith.load(tmp_path / "out").predict(texts)]
    assert len(found) == 6
    again = finetune(tiny_job(str(tmp_path / "out"), tmp_path / "again", task, recipe=recipe(None)))
    assert again.finished is not None
    assert load_model(tmp_path / "again").model.spec.task == 2  # the model's own


@pytest.mark.parametrize(("precision", "close"), [("fp32", 1e-5), ("auto", 2e-2)])
def test_embedding_reads_texts_with_the_task_of_the_folder(
    precision: str, close: float, tmp_path: Path
) -> None:
    """With the native kernel, too, which is chosen where it was proven."""
    plain = load_model(folder(tmp_path / "m"))
    model = plain.model
    vectors = {}
    for task in (0, 3):
        named = build("ernie", replace(model.spec, task=task))
        named.load_state_dict(model.state_dict())
        save_model(named, plain.tokenizer, tmp_path / f"task-{task}")
        loaded = bertsmith.load(tmp_path / f"task-{task}", precision=precision)
        vectors[task] = loaded.encode(TEXTS)
    assert float(np.abs(vectors[0] - vectors[3]).max()) > 0.1
    ids = plain.tokenizer.encode(TEXTS[0]).ids
    channels = {"tasks": np.full(len(ids), 3)}
    with torch.inference_mode():
        hidden = model.eval()(Inputs.of(ids, [len(ids)], channels=channels)).hidden
    np.testing.assert_allclose(vectors[3][0], hidden.mean(0).numpy(), atol=close)


def test_a_task_that_the_model_does_not_have_is_refused(tmp_path: Path) -> None:
    job = tiny_job(folder(tmp_path / "m"), tmp_path / "out", "classify", recipe=recipe(4))
    with pytest.raises(ConfigError, match=r"encoder\.task=4: this model has 4 tasks.*0 to 3"):
        finetune(job)
    none = tiny_job(folder(tmp_path / "n", 0), tmp_path / "out", "classify", recipe=recipe(1))
    with pytest.raises(ConfigError, match=r"encoder\.task=1: this model has no tasks; leave it"):
        finetune(none)
