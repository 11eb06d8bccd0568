"""R-Drop: the mean loss of two dropout passes and their divergence."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tiny_finetuning import RECIPE, rows, straight_and_cut, tiny_job, weights
from tiny_tasks import tiny_task_model, word_tokenizer
from torch import Tensor
from torch.distributions import Bernoulli, Categorical, kl_divergence

from bertsmith.config import changed
from bertsmith.errors import ConfigError
from bertsmith.runtime.load_predictor import load_predictor
from bertsmith.tasks.batch import task_batch
from bertsmith.tasks.feature import Feature
from bertsmith.tasks.kinds import TASKS, task_from_data
from bertsmith.tasks.length import LengthSettings
from bertsmith.tasks.model.layers import HeadSettings
from bertsmith.tasks.model.task_model import TaskModel
from bertsmith.tasks.model.text_vector import VectorSettings
from bertsmith.tasks.regularizers import RDrop
from bertsmith.training.kinds.labeled.learner import finetune
from bertsmith.training.kinds.labeled.recipe import (
    EncoderSettings,
    FinetuneRecipe,
    RegularizationSettings,
)
from bertsmith.training.kinds.labeled.record import regularization

MEAN = VectorSettings(pooling="mean")


def model_and_features(name: str, dropout: float = 0.0) -> tuple[TaskModel, list[Feature]]:
    examples = rows(8, name)
    task = task_from_data(TASKS[name], examples)
    model = tiny_task_model(task, vector=MEAN, head=HeadSettings(dropout=dropout))
    return model.train(), task.features(examples, word_tokenizer(), LengthSettings())


def with_r_drop(weight: float, token_dropout: float = 0.0) -> FinetuneRecipe:
    return changed(
        RECIPE,
        {
            "encoder.dropout": 0.1,
            "regularization.token_dropout": token_dropout,
            "regularization.r_drop": weight,
        },
    )


@pytest.mark.parametrize("task", sorted(n for n, k in TASKS.items() if k.divergence))
def test_without_dropout_the_loss_is_that_of_one_pass(task: str) -> None:
    model, features = model_and_features(task)
    batch = task_batch(features)
    twice = RDrop(3.0)(model, batch, model.task.loss)
    once = model.task.loss(model(batch), batch)
    assert twice.sum.item() == pytest.approx(once.sum.item(), rel=1e-6)
    assert twice.count == once.count == model.task.count(batch)


@pytest.mark.parametrize("task", sorted(n for n, k in TASKS.items() if k.divergence))
def test_two_passes_cost_their_mean_and_their_divergence(task: str) -> None:
    model, features = model_and_features(task, dropout=0.3)
    batch = task_batch(features)
    loss = model.task.loss
    torch.manual_seed(5)
    first, second = model(batch), model(batch)
    mean = (loss(first, batch).sum + loss(second, batch).sum) / 2
    divergence = TASKS[task].divergence(first, second)
    assert divergence > 0
    torch.manual_seed(5)
    found = RDrop(3.0)(model, batch, loss)
    torch.testing.assert_close(found.sum, mean + 3.0 * divergence)
    found.sum.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_differences_are_those_of_the_paper() -> None:
    random = torch.Generator().manual_seed(4)
    first, other = (torch.randn(7, 3, generator=random) for _ in range(2))

    def both(kind: type[Categorical] | type[Bernoulli]) -> Tensor:
        one, two = kind(logits=first), kind(logits=other)
        return (kl_divergence(one, two) + kl_divergence(two, one)).sum() / 2

    torch.testing.assert_close(TASKS["classify"].divergence(first, other), both(Categorical))
    torch.testing.assert_close(TASKS["multilabel"].divergence(first, other), both(Bernoulli) / 3)
    squares = sum((a - b) ** 2 for a, b in zip(first.flatten(), other.flatten(), strict=True))
    torch.testing.assert_close(TASKS["regress"].divergence(first, other), squares)


def test_a_run_learns_and_goes_on_to_the_same_bits(source: str, tmp_path: Path) -> None:
    recipe = with_r_drop(1.0, token_dropout=0.1)
    done = straight_and_cut(source, tmp_path, recipe)
    assert done.dev_figures is not None
    assert done.dev_figures["accuracy"] > 0.8
    finetune(tiny_job(source, tmp_path / "once", recipe=with_r_drop(0.0, token_dropout=0.1)))
    assert weights(tmp_path / "once") != weights(tmp_path / "straight")
    words = regularization(load_predictor(tmp_path / "straight"), recipe)
    assert "token dropout 0.1, R-Drop 1" in words


@pytest.mark.parametrize("task", ["multilabel", "regress"])
def test_labels_and_numbers_can_be_compared(task: str, source: str, tmp_path: Path) -> None:
    done = finetune(tiny_job(source, tmp_path / "run", task=task, recipe=with_r_drop(1.0)))
    assert done.outcome.status == "finished"


@pytest.mark.parametrize("task", ["tag", "answer", "choose"])
def test_answers_of_other_tasks_are_refused(task: str, source: str, tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=rf"regularization\.r_drop compares .* the task is {task}"
    ):
        finetune(tiny_job(source, tmp_path / "run", task=task, recipe=with_r_drop(1.0)))


def test_a_frozen_encoder_and_auxiliary_targets_are_refused() -> None:
    with pytest.raises(ValueError, match="a frozen encoder reads each text once"):
        FinetuneRecipe.model_validate(
            {"encoder": {"frozen": True}, "regularization": {"r_drop": 1.0}}
        )
    with pytest.raises(ValueError, match=r"regularization\.r_drop compares .* leave it out"):
        FinetuneRecipe.model_validate(
            {"regularization": {"r_drop": 1.0}, "auxiliary": {"stars": {"kind": "number"}}}
        )


def test_without_dropout_both_passes_are_the_same() -> None:
    encoder = EncoderSettings(dropout=0.0)
    added = RegularizationSettings(r_drop=1.0)
    with pytest.raises(ValueError, match="differ by dropout, and there is none"):
        FinetuneRecipe(encoder=encoder, regularization=added, head=HeadSettings(dropout=0.0))
    assert FinetuneRecipe(encoder=encoder, regularization=added).head.dropout == 0.1
