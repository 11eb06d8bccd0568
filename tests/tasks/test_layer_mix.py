"""The learned mix of all layers before everything else: in tags, under an LSTM, frozen, on disk."""

from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_finetuning import RECIPE, rows, tiny_folder, tiny_job
from tiny_tasks import mix_of

import bertsmith
from bertsmith.nn.encoder import Want
from bertsmith.nn.pooling import LayerMix
from bertsmith.runtime.load_predictor import load_predictor
from bertsmith.tasks.batch import task_batch
from bertsmith.tasks.model.heads import RowsHead
from bertsmith.tasks.model.layers import HeadSettings
from bertsmith.training.kinds.labeled.learner import finetune
from bertsmith.training.kinds.labeled.recipe import (
    EncoderSettings,
    FinetuneRecipe,
    TextVectorSettings,
)
from bertsmith.training.recipe import RatedOptimizer


def mixed(*, lstm: int | None = None, frozen: bool = False) -> FinetuneRecipe:
    return RECIPE.model_copy(
        update={
            "vector": TextVectorSettings(pooling="mean", layers="mix"),
            "head": HeadSettings(lstm=lstm, dropout=0.0),
            "encoder": EncoderSettings(frozen=frozen),
            "optimizer": RatedOptimizer(lr=3e-3, head_lr=2e-2),
        }
    )


@pytest.mark.parametrize("task", ["classify", "tag"])
@pytest.mark.parametrize("lstm", [None, 16])
def test_a_folder_with_a_mix_predicts_what_it_learned(
    task: str, lstm: int | None, tmp_path: Path
) -> None:
    source = tiny_folder(tmp_path / "m")
    done = finetune(tiny_job(source, tmp_path / "out", task=task, recipe=mixed(lstm=lstm)))
    assert done.finished is not None
    assert mix_of(done.finished.model).weights.abs().max() > 0
    assert done.dev_figures is not None
    assert next(iter(done.dev_figures.values())) > 0.9
    texts = [row.texts[0] for row in rows(20, task, seed=9)]
    again = bertsmith.load(tmp_path / "out").predict(texts)
    alone = load_predictor(tmp_path / "out").predict(texts)
    assert [one.value for one in again] == [one.value for one in alone]


def test_the_mix_is_gamma_times_the_mean_of_the_layers_by_softmax(tmp_path: Path) -> None:
    source = tiny_folder(tmp_path / "m")
    finetune(tiny_job(source, tmp_path / "out", task="tag", recipe=mixed()))
    predictor = load_predictor(tmp_path / "out")
    model = predictor.model
    features = predictor.reading.features(model.task, rows(5, "tag", seed=9))
    batch = task_batch(features)
    with torch.no_grad():
        layers = model.transformer(batch.inputs, want=Want(layers=True)).layers
        assert layers is not None
        assert isinstance(model.head, RowsHead)
        shares = mix_of(model).weights.softmax(0)
        hidden = sum(share * layer for share, layer in zip(shares, layers, strict=True))
        read = mix_of(model).gamma * hidden[batch.at]
        logits = model.head.own(read, batch.meta.new_zeros(len(read), 0))
        torch.testing.assert_close(model(batch), logits, rtol=0, atol=1e-5)


def test_a_frozen_encoder_under_an_lstm_reads_each_text_once(tmp_path: Path) -> None:
    source = tiny_folder(tmp_path / "m")
    recipe = mixed(lstm=8, frozen=True)
    done = finetune(tiny_job(source, tmp_path / "out", task="tag", recipe=recipe))
    assert done.finished is not None
    assert done.finished.model.keeps_layers
    assert done.outcome.tokens == 0  # none went through the encoder in a step


def test_a_frozen_mix_reads_columns_of_mean_0_and_deviation_1(tmp_path: Path) -> None:
    source = tiny_folder(tmp_path / "m")
    job = tiny_job(source, tmp_path / "out", task="tag", recipe=mixed(frozen=True))
    finetune(job)
    predictor = load_predictor(tmp_path / "out")
    model = predictor.model
    mix = mix_of(model)
    batch = task_batch(predictor.reading.features(model.task, job.rows.train))
    with torch.no_grad():
        layers = model.layers(batch).double()
        torch.testing.assert_close(mix.centers.double(), layers.mean(1), rtol=0, atol=1e-4)
        wanted = layers.std(1, correction=0)
        torch.testing.assert_close(mix.scales.double(), wanted, rtol=1e-3, atol=1e-4)
        shares = mix.weights.softmax(0).double()
        standard = (layers - layers.mean(1, keepdim=True)) / wanted[:, None]
        mixed_rows = mix.gamma.double() * torch.tensordot(shares, standard, dims=1)
        torch.testing.assert_close(mix(layers.float()).double(), mixed_rows, rtol=0, atol=1e-3)


def test_a_column_that_never_changes_is_not_blown_up() -> None:
    mix = LayerMix(1, 2)
    rows = np.array([[[1.0, 5.0], [3.0, 5.0]]], dtype=np.float32)
    mix.standardize([rows])
    assert mix(torch.from_numpy(rows)).tolist() == [[-1.0, 0.0], [1.0, 0.0]]
