"""Training texts that are read twice: what the two readings differ by, and what that costs."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tiny_finetuning import RECIPE, rows, straight_and_cut, tiny_folder, tiny_job, weights
from tiny_tasks import tiny_task_model, word_tokenizer
from torch import Tensor
from torch.distributions import Bernoulli, Categorical, kl_divergence

from bertsmith.errors import ConfigError
from bertsmith.runtime.predictor import load_predictor
from bertsmith.tasks.batch import task_batch
from bertsmith.tasks.feature import Feature
from bertsmith.tasks.kinds import task_from_data
from bertsmith.tasks.length import LengthSettings
from bertsmith.tasks.losses import CrossEntropySettings
from bertsmith.tasks.model.head import HeadSettings
from bertsmith.tasks.model.task_model import TaskModel
from bertsmith.tasks.model.text_vector import VectorSettings
from bertsmith.tasks.r_drop import DIFFERENCES, read_twice
from bertsmith.training.finetune.finetune import finetune
from bertsmith.training.finetune.recipe import EncoderSettings, FinetuneRecipe
from bertsmith.training.finetune.record import regulariser

MEAN = VectorSettings(pooling="mean")


def model_and_features(name: str, dropout: float = 0.0) -> tuple[TaskModel, list[Feature]]:
    examples = rows(8, name)
    task = task_from_data(name, examples, loss=CrossEntropySettings(), crf=False)
    model = tiny_task_model(task, vector=MEAN, head=HeadSettings(dropout=dropout))
    return model.train(), task.features(examples, word_tokenizer(), LengthSettings())


def agreeing(weight: float, masked: float = 0.0) -> FinetuneRecipe:
    encoder = EncoderSettings(dropout=0.1, masked=masked, agreement=weight)
    return RECIPE.model_copy(update={"encoder": encoder})


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_folder(tmp_path_factory.mktemp("source") / "model")


@pytest.mark.parametrize("task", sorted(DIFFERENCES))
def test_where_nothing_is_hidden_or_dropped_the_loss_is_that_of_one_reading(task: str) -> None:
    model, features = model_and_features(task)
    batch = task_batch(features)
    twice = read_twice(model, batch, model.task.loss, 3.0)
    once = model.task.loss(model(batch), batch)
    assert twice.sum.item() == pytest.approx(once.sum.item(), rel=1e-6)
    assert twice.count == once.count == model.task.count(batch)


@pytest.mark.parametrize("task", sorted(DIFFERENCES))
def test_two_readings_cost_their_mean_and_what_they_differ_by(task: str) -> None:
    model, features = model_and_features(task, dropout=0.3)
    batch = task_batch(features)
    loss = model.task.loss
    torch.manual_seed(5)
    first, second = model(batch), model(batch)
    mean = (loss(first, batch).sum + loss(second, batch).sum) / 2
    apart = DIFFERENCES[task](first, second)
    assert apart > 0
    torch.manual_seed(5)
    found = read_twice(model, batch, loss, 3.0)
    torch.testing.assert_close(found.sum, mean + 3.0 * apart)
    found.sum.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_differences_are_those_of_the_paper() -> None:
    random = torch.Generator().manual_seed(4)
    first, other = (torch.randn(7, 3, generator=random) for _ in range(2))

    def both(kind: type[Categorical] | type[Bernoulli]) -> Tensor:
        one, two = kind(logits=first), kind(logits=other)
        return (kl_divergence(one, two) + kl_divergence(two, one)).sum() / 2

    torch.testing.assert_close(DIFFERENCES["classify"](first, other), both(Categorical))
    torch.testing.assert_close(DIFFERENCES["multilabel"](first, other), both(Bernoulli) / 3)
    squares = sum((a - b) ** 2 for a, b in zip(first.flatten(), other.flatten(), strict=True))
    torch.testing.assert_close(DIFFERENCES["regress"](first, other), squares)


def test_a_run_learns_and_goes_on_to_the_same_bits(source: str, tmp_path: Path) -> None:
    recipe = agreeing(1.0, masked=0.1)
    done = straight_and_cut(source, tmp_path, recipe)
    assert done.dev_figures is not None
    assert done.dev_figures["accuracy"] > 0.8
    finetune(tiny_job(source, tmp_path / "once", recipe=agreeing(0.0, masked=0.1)))
    assert weights(tmp_path / "once") != weights(tmp_path / "straight")
    told = regulariser(load_predictor(tmp_path / "straight"), recipe)
    assert "masked tokens 0.1, agreement of two readings 1" in told


@pytest.mark.parametrize("task", ["multilabel", "regress"])
def test_labels_and_numbers_can_agree(task: str, source: str, tmp_path: Path) -> None:
    done = finetune(tiny_job(source, tmp_path / "run", task=task, recipe=agreeing(1.0)))
    assert done.outcome.status == "finished"


@pytest.mark.parametrize("task", ["tag", "answer", "choose"])
def test_answers_of_other_tasks_are_refused(task: str, source: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=rf"encoder\.agreement compares .* the task is {task}"):
        finetune(tiny_job(source, tmp_path / "run", task=task, recipe=agreeing(1.0)))


def test_a_frozen_encoder_and_auxiliary_targets_are_refused() -> None:
    with pytest.raises(ValueError, match="no two readings can agree"):
        EncoderSettings(frozen=True, agreement=1.0)
    with pytest.raises(ValueError, match=r"encoder\.agreement compares .* leave it out"):
        FinetuneRecipe.model_validate(
            {"encoder": {"agreement": 1.0}, "auxiliary": {"stars": {"kind": "regress"}}}
        )


def test_without_dropout_there_is_nothing_to_agree_on() -> None:
    encoder = EncoderSettings(dropout=0.0, agreement=1.0)
    with pytest.raises(ValueError, match="differ by dropout, and there is none"):
        FinetuneRecipe(encoder=encoder, head=HeadSettings(dropout=0.0))
    assert FinetuneRecipe(encoder=encoder).head.dropout == 0.1
