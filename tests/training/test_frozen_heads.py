"""Heads on a frozen encoder, trained side by side: none depends on the others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny_finetuning import RECIPE, rows, tiny_folder, tiny_job

from bertsmith.errors import ConfigError
from bertsmith.folders.read import load_model
from bertsmith.folders.write import save_model
from bertsmith.tasks.model.vector_choices import vector_choices
from bertsmith.training.execution.execution import Place
from bertsmith.training.finetune.finetune import FinetuneJob
from bertsmith.training.finetune.recipe import EncoderSettings, PlanSettings
from bertsmith.training.loop.progress import Progress
from bertsmith.training.studies.frozen_heads import frozen_heads

HEADS = RECIPE.model_copy(
    update={
        "plan": PlanSettings(epochs=15, batch=16),
        "encoder": EncoderSettings(frozen=True),
    }
)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_folder(tmp_path_factory.mktemp("frozen") / "model")


def job(source: str, task: str = "classify") -> FinetuneJob:
    return tiny_job(
        source, Path("unused"), task, recipe=HEADS, train=rows(96, task), dev=rows(48, task, seed=1)
    )


def test_a_choice_comes_to_the_same_alone_and_among_others(source: str) -> None:
    choices = vector_choices(2)
    looks: list[Progress] = []
    together = frozen_heads(job(source), choices, Place(), watch=looks.append)
    assert list(together) == list(choices)
    for name in ("attention-last", "max-weighted", "first-all"):
        alone = frozen_heads(job(source), {name: choices[name]}, Place())[name]
        assert alone.figures == together[name].figures, name
        assert alone.answers == together[name].answers, name
    assert [look.step for look in looks] == list(range(1, 91))
    assert looks[-1].share == 1.0
    assert len({tuple(one.figures.values()) for one in together.values()}) > 1


def test_heads_learn_and_the_folder_stays_as_it_was(source: str) -> None:
    before = {p.name: p.read_bytes() for p in Path(source).iterdir() if p.is_file()}
    asked = replace(job(source), train=rows(200))
    done = frozen_heads(asked, vector_choices(2, ["mean"], ["0"]), Place())["mean-layer0"]
    yes = sum(one.target.name == "yes" for one in rows(48, seed=1))  # type: ignore[union-attr]
    assert (done.figures["accuracy"] or 0) > max(yes, 48 - yes) / 48 + 0.05
    assert len(done.answers) == 48
    assert {p.name: p.read_bytes() for p in Path(source).iterdir() if p.is_file()} == before
    assert not Path("unused").exists()


def test_the_length_of_vectors_does_not_decide(source: str, tmp_path: Path) -> None:
    """The same vectors ten times as long lead to the same answers, unless a rate is given."""
    loaded = load_model(source)
    norm = loaded.model.encoder.blocks[-1].feed_forward_norm
    with torch.no_grad():
        for parameter in norm.parameters():
            parameter.mul_(10)
    save_model(loaded.model, loaded.tokenizer, tmp_path / "long")
    longer, mean = str(tmp_path / "long"), vector_choices(2, ["mean"], ["last"])

    def accuracy(model: str, rate: float | None) -> float:
        return frozen_heads(job(model), mean, Place(), rate=rate)["mean-last"].figures["accuracy"]  # type: ignore[return-value]

    assert accuracy(longer, None) == pytest.approx(accuracy(source, None), abs=0.05)
    assert accuracy(source, 1e-4) < accuracy(source, None)


@pytest.mark.parametrize("task", ["multilabel", "regress", "choose"])
def test_every_task_on_texts_can_be_asked(source: str, task: str) -> None:
    done = frozen_heads(job(source, task), vector_choices(2, ["max"], ["last", "0"]), Place())
    assert set(done) == {"max-last", "max-layer0"}
    assert all(len(one.answers) == 48 for one in done.values())


def test_windows_of_a_long_text_become_one_vector(source: str) -> None:
    recipe = HEADS.model_copy(
        update={"length": HEADS.length.model_copy(update={"max_length": 6, "stride": 2})}
    )
    asked = tiny_job(source, Path("unused"), recipe=recipe, train=rows(40), dev=rows(20, seed=1))
    done = frozen_heads(asked, vector_choices(2, ["mean"], ["last"]), Place())["mean-last"]
    assert len(done.answers) == 20


@pytest.mark.parametrize("task", ["tag", "answer"])
def test_tasks_on_tokens_are_refused(source: str, task: str) -> None:
    with pytest.raises(ConfigError, match="no vector of a text"):
        frozen_heads(job(source, task), vector_choices(2), Place())
