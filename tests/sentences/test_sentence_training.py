"""Sentence training: every objective learns, the best weights are saved, odd settings refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tiny_sentences import (
    sentence_rows,
    tiny_job,
    tiny_recipe,
    tiny_sentence_folder,
    with_rows,
)

from bertsmith.errors import ConfigError, InputFileError
from bertsmith.folders.read import load_model
from bertsmith.metrics.correlation import spearman
from bertsmith.models.sentence_spec import DenseLayer
from bertsmith.nn.pooling import first as first_rows
from bertsmith.runtime.loading import load
from bertsmith.sentences.compare import paired_similarity
from bertsmith.sentences.train.learner import train_sentences
from bertsmith.sentences.train.recipe import SENTENCE_RECIPES, load_sentence_recipe
from bertsmith.sentences.train.rows import KINDS, training_rows, unit_scores, usual_objective
from bertsmith.sentences.train.workload import packed_texts

CASES = [(objective, kind) for objective, kinds in KINDS.items() for kind in kinds]
LONGER = {"plan": {"steps": 30, "batch": 16, "evaluations": 3}, "encoder": {"dropout": 0.1}}


def log(folder: Path, kind: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [line for line in lines if line["kind"] == kind]


@pytest.mark.parametrize(("objective", "kind"), CASES)
def test_every_objective_learns_from_every_kind_it_takes(
    tiny: str, tmp_path: Path, objective: str, kind: Any
) -> None:
    job = tiny_job(tiny, objective, kind, sections=LONGER, out=tmp_path / "run")
    if objective == "triplet" and kind == "labels":
        rows = sentence_rows("triplets").rows
        pairs = [(a, b) for a, p, n in rows for b in (p, n)]
        labels = np.array([1.0, 0.0] * len(rows))
        data = replace(job.rows.train, rows=pairs, targets=labels, lines=range(len(pairs)))
        job = with_rows(job, train=data)
    losses: list[float] = []
    result = train_sentences(job, watch=lambda look: losses.append(look.losses["loss"]))
    assert result.outcome.step == 30
    assert np.mean(losses[-5:]) < 0.95 * np.mean(losses[:5])
    loaded = load_model(tmp_path / "run")
    assert loaded.folder.sentence is not None
    assert loaded.folder.sentence.pooling == ("mean",)


def test_the_folder_holds_the_best_weights_by_dev(tiny: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    result = train_sentences(tiny_job(tiny, "cosine", "scores", sections=LONGER, out=out))
    evaluations = [line["figures"]["spearman"] for line in log(out, "eval") + log(out, "final")]
    best = result.outcome.best
    assert best is not None
    assert best.figures["spearman"] == max(evaluations)
    assert log(out, "eval")[0]["step"] == 0
    assert max(evaluations) > evaluations[0]
    dev = sentence_rows("scores", 20, seed=5)
    with load(out, precision="fp32") as model:
        first, second = (model.encode([row[side] for row in dev.rows]) for side in (0, 1))
    near = paired_similarity("cosine", first, second)
    assert spearman(dev.targets, near) == pytest.approx(best.figures["spearman"], abs=1e-6)


def test_training_that_only_does_harm_leaves_the_weights_of_the_start(
    tiny: str, tmp_path: Path
) -> None:
    job = tiny_job(tiny, "cosine", "scores", sections=LONGER, out=tmp_path / "run")
    assert job.rows.train.targets is not None
    upside_down = replace(job.rows.train, targets=5 - job.rows.train.targets)
    result = train_sentences(with_rows(job, train=upside_down, dev=replace(job.rows.train)))
    result_file = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result_file["best"]["step"] == 0
    assert result.outcome.last is not None
    assert result.outcome.best is not None
    assert result.outcome.last.figures["spearman"] < result.outcome.best.figures["spearman"]
    start = load_file(Path(tiny) / "model.safetensors")
    saved = load_file(tmp_path / "run" / "model.safetensors")
    assert all(torch.equal(start[name], tensor) for name, tensor in saved.items())


@pytest.mark.parametrize("head", ["training", "kept", "none"])
def test_the_head_of_simcse_is_saved_only_if_it_is_kept(
    tiny: str, tmp_path: Path, head: str
) -> None:
    objective = {"kind": "simcse", "head": head}
    sections = {"objective": objective, "vector": {"pooling": "first"}}
    job = tiny_job(tiny, "simcse", "texts", sections=sections, out=tmp_path / "run")
    result = train_sentences(with_rows(job, dev=None))
    assert result.finished is not None
    assert (result.finished.model.extra is not None) == (head == "training")
    settings = load_model(tmp_path / "run").sentence
    assert settings.pooling == ("first",)
    assert [layer.activation for layer in settings.dense] == (["tanh"] if head == "kept" else [])


def test_first_token_pooling_trains_as_if_all_rows_were_computed(tiny: str) -> None:
    job = tiny_job(tiny, "contrastive", "pairs", sections={"vector": {"pooling": "first"}})
    result = train_sentences(with_rows(job, dev=None))
    assert result.finished is not None
    assert result.finished.tokenizer is not None
    ids, _ = result.finished.tokenizer.fast_ids(["red bird", "small round stone tree"], 32)
    inputs = packed_texts(ids)
    with torch.no_grad():
        short = result.finished.model(inputs)
        hidden = result.finished.model.model(inputs).hidden
    torch.testing.assert_close(short, first_rows(hidden, torch.tensor([len(one) for one in ids])))


def test_dense_layers_of_a_model_are_trained_and_saved(tmp_path: Path) -> None:
    layer = DenseLayer(
        inputs=32, outputs=8, activation="tanh", weight=torch.eye(32)[:8], bias=torch.zeros(8)
    )
    folder = tiny_sentence_folder(tmp_path / "model", dense=(layer,), normalize=True)
    train_sentences(tiny_job(folder, "contrastive", "pairs", out=tmp_path / "run", dev=None))
    (saved,) = load_model(tmp_path / "run").sentence.dense
    assert saved.weight is not None
    assert saved.weight.shape == (8, 32)
    assert not torch.equal(saved.weight, torch.eye(32)[:8])


def test_a_mix_of_layers_is_trained_as_it_is_used(tmp_path: Path) -> None:
    folder = tiny_sentence_folder(tmp_path / "model", layer_mix=(0.0, 1.0, 1.0))
    result = train_sentences(
        tiny_job(folder, "contrastive", "pairs", out=tmp_path / "run", dev=None)
    )
    assert load_model(tmp_path / "run").sentence.layer_mix == (0.0, 1.0, 1.0)
    assert result.finished is not None
    assert result.finished.tokenizer is not None
    texts = ["red bird", "small round stone tree"]
    with load(tmp_path / "run", precision="fp32") as model, torch.no_grad():
        ids, _ = result.finished.tokenizer.fast_ids(texts, 32)
        torch.testing.assert_close(
            result.finished.model(packed_texts(ids)), torch.from_numpy(model.encode(texts))
        )


def test_matryoshka_trains_the_first_dimensions(tiny: str, tmp_path: Path) -> None:
    sections = {**LONGER, "matryoshka": {"dims": [32, 8]}}
    result = train_sentences(tiny_job(tiny, "contrastive", "pairs", sections=sections))
    assert result.outcome.step == 30


def test_a_default_prompt_is_read_and_not_pooled(tmp_path: Path) -> None:
    folder = tiny_sentence_folder(
        tmp_path / "model",
        prompts={"query": "red: "},
        default_prompt="query",
        pools_prompt=False,
    )
    result = train_sentences(tiny_job(folder, "contrastive", "pairs", dev=None))
    assert result.finished is not None
    assert result.finished.model.prompt_rows > 1


@pytest.mark.parametrize(
    ("objective", "data", "sections", "message"),
    [
        ("cosine", "pairs", {}, "needs a score per pair, and rows.tsv holds pairs"),
        ("softmax", "scores", {}, "needs a label per pair, and rows.tsv holds scores"),
        ("triplet", "texts", {}, "learns from triplets or labels, and rows.tsv holds texts"),
        ("contrastive", "scores", {}, "learns from pairs or triplets or labels"),
        (
            "triplet",
            "triplets",
            {"objective": {"kind": "triplet", "distance": "cosine", "margin": 2.5}},
            "lie between 0 and 2",
        ),
        (
            "triplet",
            "triplets",
            {"objective": {"kind": "triplet", "margin": 5.0}, "vector": {"normalize": True}},
            "distances of unit vectors lie between 0 and 2",
        ),
        ("cosine", "scores", {"matryoshka": {"dims": [64, 32]}}, "32, the width of the vectors"),
    ],
)
def test_what_makes_no_sense_is_refused(
    tiny: str, objective: str, data: Any, sections: Any, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        train_sentences(tiny_job(tiny, objective, data, sections=sections))


def test_scores_outside_of_the_stated_range_are_named_with_their_line() -> None:
    data = sentence_rows("scores", 10)
    assert data.targets is not None
    data.targets[3] = 7.0
    with pytest.raises(InputFileError, match=r"rows.tsv, line 4: the score 7 is not between 0 and"):
        unit_scores(data, (0.0, 5.0))
    data.targets[3] = 700.0
    with pytest.raises(InputFileError, match=r"line 4: the score 700 fits none of the usual"):
        unit_scores(data)
    with pytest.raises(ConfigError, match="lower bound first"):
        unit_scores(data, (5.0, 0.0))


def test_ranges_are_guessed_and_mapped_to_the_unit_interval() -> None:
    data = replace(sentence_rows("scores", 3), targets=np.array([0.0, 2.5, 5.0]))
    unit, bounds = unit_scores(data)
    assert (unit.tolist(), bounds) == ([0.0, 0.5, 1.0], (0.0, 5.0))
    unit, bounds = unit_scores(replace(data, targets=np.array([-1.0, 0.25, 1.0])))
    assert (unit.tolist(), bounds) == ([-1.0, 0.25, 1.0], (-1.0, 1.0))


def test_one_class_only_teaches_nothing() -> None:
    labels = replace(sentence_rows("labels", 4), labels=("yes",), targets=np.zeros(4))
    for objective in ("softmax", "cosent", "contrastive"):
        with pytest.raises(InputFileError, match="every pair has the label 'yes'"):
            training_rows(labels, objective)
    scores = replace(sentence_rows("scores", 4), targets=np.ones(4))
    with pytest.raises(InputFileError, match="all 4 scores are 1"):
        training_rows(scores, "cosine")


def test_inference_labels_become_triplets_of_entailment_and_contradiction() -> None:
    data = replace(
        sentence_rows("labels", 6),
        rows=[("a", "b"), ("a", "c"), ("a", "d"), ("e", "f"), ("e", "g"), ("h", "i")],
        labels=("contradiction", "entailment", "neutral"),
        targets=np.array([1.0, 0.0, 2.0, 0.0, 1.0, 1.0]),
    )
    assert usual_objective(data) == "softmax"
    rows = training_rows(data, "simcse")
    assert list(rows.columns) == [("a", "b", "c"), ("e", "g", "f")]
    assert "1 pairs left out" in rows.notes[0]


def test_every_shipped_recipe_is_valid() -> None:
    for name in SENTENCE_RECIPES.shipped():
        assert load_sentence_recipe(name).about.summary


def test_a_recipe_has_one_length() -> None:
    assert load_sentence_recipe(None, ["plan.steps=5"]).plan.epochs is None
    assert load_sentence_recipe(None, ['plan.budget="20m"']).plan.schedule(9).budget == 1_200
    with pytest.raises(ConfigError, match="exactly one of epochs, steps and budget"):
        tiny_recipe("cosine", plan={"epochs": 2.0})


def test_a_budget_of_time_ends_training(tiny: str) -> None:
    plan = {"steps": None, "budget": 2.0, "evaluate_every": 5}
    result = train_sentences(tiny_job(tiny, "contrastive", "pairs", sections={"plan": plan}))
    assert result.outcome.status == "finished"
    assert result.outcome.seconds < 4


def test_a_changed_file_is_refused_when_a_run_resumes(tiny: str, tmp_path: Path) -> None:
    job = tiny_job(tiny, "cosine", "scores", out=tmp_path / "run")
    train_sentences(job)
    with pytest.raises(ConfigError, match=r"data\.train was"):
        train_sentences(with_rows(job, train=sentence_rows("scores", 61)))
