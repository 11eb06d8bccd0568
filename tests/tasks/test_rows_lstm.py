"""A bidirectional LSTM between encoder and head: alone, in a task model, in a folder."""

from pathlib import Path

import pytest
import torch
from tiny_finetuning import RECIPE, rows, tiny_folder, tiny_job, tiny_writer
from tiny_tasks import reading_of

import bertsmith
from bertsmith.errors import ConfigError
from bertsmith.folders.read import load_model
from bertsmith.nn.recurrent import BiLstm
from bertsmith.tasks.model.layers import HeadSettings, draw_weights
from bertsmith.training.kinds.labeled.learner import finetune
from bertsmith.training.kinds.labeled.recipe import TextVectorSettings
from bertsmith.training.recipe import RatedOptimizer

WITH_LSTM = RECIPE.model_copy(
    update={
        "head": HeadSettings(lstm=16, dropout=0.0),
        "optimizer": RatedOptimizer(lr=3e-3, head_lr=2e-2),
    }
)


def test_every_text_is_read_alone_and_in_both_directions() -> None:
    torch.manual_seed(0)
    lstm = BiLstm(6, 4)
    texts = [torch.randn(n, 6) for n in (3, 1, 5)]
    together = lstm(torch.cat(texts), [3, 1, 5])
    assert together.shape == (9, 8)
    alone = torch.cat([lstm.cells(text[None])[0][0] for text in texts])
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-6)
    changed = texts[2].clone()
    changed[-1] += 1.0
    other = lstm(torch.cat([*texts[:2], changed]), [3, 1, 5])
    assert torch.equal(other[:4], together[:4])
    assert not torch.allclose(other[4], together[4])  # its first row sees its last


def test_its_weights_come_from_the_generator() -> None:
    drawn = []
    for _ in range(2):
        lstm = BiLstm(6, 4)
        draw_weights(lstm, torch.Generator().manual_seed(3))
        drawn.append(torch.cat([weight.flatten() for weight in lstm.parameters()]))
    assert torch.equal(*drawn)
    assert 0.4 < float(drawn[0].detach().abs().max()) <= 0.5  # reaches 1 / sqrt(4)


@pytest.mark.parametrize("task", ["classify", "tag"])
def test_a_folder_with_an_lstm_predicts_what_it_learned(task: str, tmp_path: Path) -> None:
    source = tiny_folder(tmp_path / "m")
    done = finetune(tiny_job(source, tmp_path / "out", task=task, recipe=WITH_LSTM))
    assert done.finished is not None
    assert done.dev_figures is not None
    assert reading_of(done.finished.model).lstm is not None
    assert next(iter(done.dev_figures.values())) > 0.9
    again = bertsmith.load(tmp_path / "out")
    texts = [row.texts[0] for row in rows(20, task, seed=9)]
    first, second = again.predict(texts), again.predict(texts)
    assert [one.value for one in first] == [one.value for one in second]
    weights = {n: t for n, t in done.finished.model.stored().items() if n.startswith("lstm.")}
    assert len(weights) == 8


def test_a_left_to_right_model_keeps_its_direction_and_is_read_at_its_last_token(
    tmp_path: Path,
) -> None:
    source = tiny_writer(tmp_path / "m")
    done = finetune(tiny_job(source, tmp_path / "out"))
    assert done.finished is not None
    assert done.finished.model.head.to_json()["vector"]["pooling"] == "last"
    assert load_model(tmp_path / "out").model.spec.sees == "before"
    with_lstm = finetune(tiny_job(source, tmp_path / "lstm", recipe=WITH_LSTM))
    assert with_lstm.finished is not None
    assert with_lstm.finished.model.head.to_json()["vector"]["pooling"] == "mean"
    assert load_model(tmp_path / "lstm").model.spec.sees == "before"


def test_an_lstm_reads_the_last_layer(tmp_path: Path) -> None:
    vector = TextVectorSettings(pooling="mean", layers="weighted")
    recipe = WITH_LSTM.model_copy(update={"vector": vector})
    with pytest.raises(ConfigError, match=r"head\.lstm reads the last layer"):
        finetune(tiny_job(tiny_folder(tmp_path / "m"), None, recipe=recipe))
