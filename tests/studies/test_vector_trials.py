"""The study of vectors: a run of fine-tuning for each choice, the encoder frozen or trained."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny_finetuning import RECIPE, rows, tiny_job

from bertsmith.config import changed
from bertsmith.errors import ConfigError
from bertsmith.folders.read import load_model
from bertsmith.folders.write import save_model
from bertsmith.studies.vectors import frozen_recipe, vector_trials, with_vector
from bertsmith.tasks.model.text_vector import VectorSettings, vector_choices
from bertsmith.training.execution.execution import Execution
from bertsmith.training.kinds.labeled.learner import FinetuneJob, finetune
from bertsmith.training.repeat.trials import TrialResult, run_trials

HEADS = changed(frozen_recipe(RECIPE, epochs=15), {"plan.batch": 16})


def job(source: str, out: Path, task: str = "classify") -> FinetuneJob:
    return tiny_job(
        source, out, task, recipe=HEADS, train=rows(96, task), dev=rows(48, task, seed=1)
    )


def studied(job: FinetuneJob, choices: dict[str, VectorSettings]) -> dict[str, TrialResult]:
    trials = vector_trials(job, list(choices.values()), Execution())
    done = run_trials(trials, job.folder)
    return {one.name.removeprefix("frozen."): one for one in done.rows}


def test_a_frozen_choice_is_a_run_of_fine_tuning(source: str, tmp_path: Path) -> None:
    """The same optimizer, warmup and decay as everything else."""
    choices = vector_choices(2, ["mean", "attention"], ["last"])
    found = studied(job(source, tmp_path / "study"), choices)
    assert list(found) == list(choices)
    for name, choice in choices.items():
        done = finetune(with_vector(job(source, tmp_path / name), choice))
        assert done.dev_figures == found[name].figures, name
    assert not (tmp_path / "study" / "frozen.mean-last").exists()


def test_heads_learn_and_the_folder_stays_as_it_was(source: str, tmp_path: Path) -> None:
    before = {p.name: p.read_bytes() for p in Path(source).iterdir() if p.is_file()}
    more = tiny_job(source, tmp_path, recipe=HEADS, train=rows(200), dev=rows(48, seed=1))
    done = studied(more, vector_choices(2, ["mean"], ["0"]))["mean-layer0"]
    yes = sum(one.target.name == "yes" for one in rows(48, seed=1))  # type: ignore[union-attr]
    assert (done.figures["accuracy"] or 0) > max(yes, 48 - yes) / 48 + 0.05
    assert len(done.answers) == 48
    assert {p.name: p.read_bytes() for p in Path(source).iterdir() if p.is_file()} == before


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
        recipe = changed(HEADS, {"optimizer.lr": rate})
        one = replace(job(model, tmp_path / f"{Path(model).name}-{rate}"), recipe=recipe)
        return studied(one, mean)["mean-last"].figures["accuracy"] or 0.0

    assert accuracy(longer, None) == pytest.approx(accuracy(source, None), abs=0.05)
    assert accuracy(source, 1e-4) < accuracy(source, None)


@pytest.mark.parametrize("task", ["multilabel", "regress", "choose"])
def test_every_task_on_texts_can_be_studied(source: str, tmp_path: Path, task: str) -> None:
    choices = vector_choices(2, ["max"], ["last", "0"])
    found = studied(job(source, tmp_path / "study", task), choices)
    assert set(found) == {"max-last", "max-layer0"}
    for name, choice in choices.items():
        done = finetune(with_vector(job(source, tmp_path / name, task), choice))
        assert found[name].figures == done.dev_figures
        assert len(found[name].answers) == 48


def test_windows_of_a_long_text_become_one_vector(source: str, tmp_path: Path) -> None:
    """What stands behind the limit of one passage is read in others, and only there."""
    filler = ["stone", "river", "house", "stone", "river"]
    late = [
        replace(one, texts=(" ".join([*filler, "bird" if label == "yes" else "red"]),))
        for one in rows(200)
        if (label := one.target.name)  # type: ignore[union-attr]
    ]
    choices = vector_choices(2, ["mean"], ["last"])

    def accuracy(**lengths: int) -> float:
        recipe = changed(HEADS, {f"length.{name}": size for name, size in lengths.items()})
        out = tmp_path / str(lengths)
        some = tiny_job(source, out, recipe=recipe, train=late[:150], dev=late[150:])
        found = studied(some, choices)["mean-last"]
        assert len(found.answers) == 50
        return found.figures["accuracy"] or 0.0

    yes = sum("bird" in one.texts[0] for one in late[150:])
    assert accuracy(max_length=6) in (yes / 50, 1 - yes / 50), "all rows look the same"
    assert accuracy(max_length=6, stride=2) > 0.95


def test_what_only_a_trained_encoder_can_use_is_left_out_of_a_frozen_one() -> None:
    regularized = changed(
        RECIPE, {"encoder.dropout": 0.2, "regularization.token_dropout": 0.1, "optimizer.lr": 5e-5}
    )
    frozen = frozen_recipe(regularized, epochs=3.0)
    assert frozen.encoder.frozen
    assert (frozen.plan.epochs, frozen.optimizer.lr) == (3.0, None)
    assert frozen.regularization.token_dropout == 0
    with pytest.raises(ConfigError, match="a frozen encoder drops nothing out"):
        changed(frozen, {"encoder.dropout": 0.2})
