"""Fine-tuning from rows to a folder: learns, resumes, predicts the same, loads elsewhere."""

from __future__ import annotations

import json
import os
import random
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_models import shrunk
from tiny_tasks import SPECIAL, TASK_WORDS, row, word_tokenizer

from bertsmith.data.examples.example import Example, Label, Labels, Score, Target
from bertsmith.errors import FolderError, TensorMismatchError
from bertsmith.folders.task_files import HEAD
from bertsmith.folders.write import save_model
from bertsmith.models.build import build
from bertsmith.runtime.predictor import load_predictor
from bertsmith.tasks.head import HeadSettings
from bertsmith.training.finetune import Finetuned, FinetuneJob, finetune
from bertsmith.training.finetune_recipe import (
    EncoderSettings,
    FinetuneRecipe,
    PlanSettings,
    TextVectorSettings,
)
from bertsmith.training.optimizers import AdamWSettings
from bertsmith.training.progress import Progress

PLAN = PlanSettings(epochs=6, batch=8)
RECIPE = FinetuneRecipe(
    plan=PLAN, optimizer=AdamWSettings(lr=3e-3), encoder=EncoderSettings(dropout=0.0)
)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny model folder that knows a dozen words."""
    path = tmp_path_factory.mktemp("source") / "model"
    spec = shrunk("bert", vocab_size=len(SPECIAL) + len(TASK_WORDS), hidden=32, heads=2, rows=64)
    model = build("bert", spec, generator=torch.Generator().manual_seed(1))
    save_model(model, word_tokenizer(), path)
    return str(path)


def rows(count: int, target: Callable[[list[str]], Target], seed: int = 0) -> list[Example]:
    rng = random.Random(seed)
    found = []
    for number in range(count):
        words = rng.choices(TASK_WORDS, k=rng.randint(3, 9))
        found.append(row(number, [" ".join(words)], target(words)))
    return found


def has_bird(words: list[str]) -> Label:
    return Label("yes" if "bird" in words or "tree" in words else "no")


def job(source: str, out: Path, task: str = "classify", **changes: object) -> FinetuneJob:
    target: dict[str, Callable[[list[str]], Target]] = {
        "classify": has_bird,
        "multilabel": lambda words: Labels(tuple(n for n in ("bird", "tree") if n in words)),
        "regress": lambda words: Score(10.0 * words.count("bird") + len(words)),
    }
    made = FinetuneJob(
        recipe=RECIPE,
        task=task,
        model=source,
        train=rows(160, target[task]),
        dev=rows(60, target[task], seed=1),
        out=out,
    )
    return replace(made, **changes)


def figure(done: Finetuned) -> float:
    assert done.dev_figures is not None
    return next(iter(done.dev_figures.values()))


@pytest.mark.parametrize("task", ["classify", "multilabel", "regress"])
def test_a_task_is_learned_and_its_folder_says_the_same(
    source: str, tmp_path: Path, task: str
) -> None:
    what = job(source, tmp_path / "out", task)
    done = finetune(what)
    assert done.outcome.status == "finished"
    assert figure(done) > 0.8
    said = load_predictor(tmp_path / "out").predict([example.texts for example in what.dev])
    assert [one.value for one in said] == [one.value for one in done.dev_predictions]


def test_an_own_head_lies_beside_the_model(source: str, tmp_path: Path) -> None:
    recipe = RECIPE.model_copy(
        update={
            "vector": TextVectorSettings(pooling="mean", layers="weighted"),
            "head": HeadSettings(layers=(16,), batch_norm=True, dropout=0.0),
        }
    )
    what = job(source, tmp_path / "out", recipe=recipe)
    done = finetune(what)
    assert (tmp_path / "out" / HEAD).is_file()
    predictor = load_predictor(tmp_path / "out")
    said = predictor.predict([example.texts[0] for example in what.dev])
    assert [one.value for one in said] == [one.value for one in done.dev_predictions]
    (tmp_path / "out" / HEAD).unlink()
    with pytest.raises(FolderError, match=HEAD):
        load_predictor(tmp_path / "out")


def test_a_stopped_run_goes_on_to_the_same_weights(source: str, tmp_path: Path) -> None:
    def stop(look: Progress) -> None:
        if look.step == 45:
            os.kill(os.getpid(), signal.SIGTERM)

    finetune(job(source, tmp_path / "straight"))
    stopped = finetune(job(source, tmp_path / "cut"), watch=stop)
    assert (stopped.outcome.status, stopped.model) == ("stopped", None)
    finetune(job(source, tmp_path / "cut"))
    for name in ("model.safetensors", "bertsmith.json"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "straight" / name).read_bytes()


def test_a_frozen_encoder_stays_as_it_was(source: str, tmp_path: Path) -> None:
    recipe = RECIPE.model_copy(
        update={
            "encoder": EncoderSettings(frozen=True, dropout=0.0),
            "vector": TextVectorSettings(pooling="mean"),
        }
    )
    done = finetune(job(source, tmp_path / "out", recipe=recipe))
    before = (Path(source) / "model.safetensors").stat().st_size
    assert before > 0
    from bertsmith.folders.read import load_model

    old, new = load_model(source).model, load_model(tmp_path / "out").model
    stored = dict(old.named_parameters())
    for name, parameter in new.named_parameters():
        assert torch.equal(parameter, stored[name]), name
    assert figure(done) > 0.5


def test_transformers_gives_the_same_logits(source: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    what = job(source, tmp_path / "out")
    finetune(what)
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "out")
    assert theirs.config.problem_type == "single_label_classification"
    assert theirs.config.id2label == {0: "no", 1: "yes"}
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    predictor = load_predictor(tmp_path / "out")
    texts = [example.texts[0] for example in what.dev[:10]]
    batch = tokenizer(texts, return_tensors="pt", padding=True)
    with torch.no_grad():
        odds = theirs.eval()(**batch).logits.softmax(1).numpy()
    ours = [list(one.probabilities.values()) for one in predictor.predict(texts)]
    np.testing.assert_allclose(ours, odds, atol=1e-5)


def test_a_folder_that_was_not_fine_tuned_is_refused(source: str) -> None:
    with pytest.raises(FolderError, match="was not fine-tuned"):
        load_predictor(source)


def test_a_head_of_another_task_is_refused(source: str, tmp_path: Path) -> None:
    recipe = RECIPE.model_copy(update={"vector": TextVectorSettings(pooling="mean")})
    finetune(job(source, tmp_path / "out", recipe=recipe))
    path = tmp_path / "out" / "bertsmith.json"
    told = json.loads(path.read_text())
    told["task"]["labels"] = ["a", "b", "c"]
    path.write_text(json.dumps(told))
    with pytest.raises(TensorMismatchError, match="does not fit the task"):
        load_predictor(tmp_path / "out")
