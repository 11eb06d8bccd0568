"""Heads that only training needs are kept beside the model, and --init goes on with them."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from toy_corpus import short_recipe

from bertsmith.corpus.shards import open_corpus
from bertsmith.errors import FolderError, TensorMismatchError, UnsafeFileError
from bertsmith.folders.convert import convert
from bertsmith.folders.extras import OBJECTIVE_HEADS, objective_heads
from bertsmith.folders.read import load_model
from bertsmith.folders.vocabulary_growth import extend_model
from bertsmith.folders.write import save_model
from bertsmith.objectives.program import PretrainModule
from bertsmith.training.execution.ranks import Ranks
from bertsmith.training.pretrain.model import build_module, save_result
from bertsmith.training.pretrain.pretrain import Job, pretrain
from bertsmith.training.pretrain.workload import PretrainWorkload

pytestmark = pytest.mark.usefixtures("edited_folders")


@pytest.fixture(scope="module")
def span_folder(toy_shards, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("spanbert") / "run"
    recipe = short_recipe("spanbert", "optimizer.lr=5e-3", "model.dropout=0.1", steps=4)
    pretrain(Job(recipe=recipe, corpus=toy_shards, out=out))
    return out


@pytest.fixture
def copy(span_folder, tmp_path) -> Path:
    """The model folder without the run's own files."""
    made = tmp_path / "copy"
    made.mkdir()
    for path in span_folder.iterdir():
        if path.is_file():
            (made / path.name).write_bytes(path.read_bytes())
    return made


def module(name: str, toy_shards: Path, init: Path | None = None, *more: str) -> PretrainModule:
    recipe, shards = short_recipe(name, *more), open_corpus(toy_shards)
    return build_module(recipe, shards, PretrainWorkload(recipe, shards).program, init=init)


def heads(made: PretrainModule) -> dict[str, torch.Tensor]:
    return {name: tensor.detach() for name, tensor in made.own_heads.named_parameters()}


def test_the_folder_holds_the_trained_head_in_a_file_of_its_own(span_folder, toy_shards) -> None:
    told = json.loads((span_folder / "bertsmith.json").read_text())
    assert told["objective_heads"] == OBJECTIVE_HEADS
    kept, fresh = load_file(span_folder / OBJECTIVE_HEADS), heads(module("spanbert", toy_shards))
    assert kept.keys() == fresh.keys()
    for name, tensor in fresh.items():
        assert kept[name].shape == tensor.shape
        assert not torch.equal(kept[name], tensor), f"{name} was not trained"
    assert not [name for name in load_file(span_folder / "model.safetensors") if "sbo" in name]


def test_what_is_stored_is_what_the_module_has(toy_shards, tmp_path) -> None:
    made = module("spanbert", toy_shards)
    with torch.no_grad():
        for parameter in made.own_heads.parameters():
            parameter.normal_()
    save_result(made, open_corpus(toy_shards).tokenizer(), tmp_path, Ranks())
    stored = load_file(tmp_path / OBJECTIVE_HEADS)
    assert all(torch.equal(stored[name], tensor) for name, tensor in heads(made).items())


def test_going_on_begins_with_the_stored_head(span_folder, toy_shards, caplog) -> None:
    kept = load_file(span_folder / OBJECTIVE_HEADS)
    with caplog.at_level(logging.WARNING):
        found = heads(module("spanbert", toy_shards, span_folder, "run.seed=77"))
    assert found.keys() == kept.keys()
    assert all(torch.equal(found[name], kept[name]) for name in kept)
    assert "at random" not in caplog.text
    fresh = heads(module("spanbert", toy_shards, None, "run.seed=77"))
    assert not torch.equal(fresh["sbo.first.weight"], kept["sbo.first.weight"])


def test_a_run_that_goes_on_saves_the_head_it_began_with(span_folder, toy_shards, tmp_path) -> None:
    recipe = short_recipe("spanbert", "optimizer.lr=1e-9", "run.seed=3", steps=1)
    pretrain(Job(recipe=recipe, corpus=toy_shards, out=tmp_path / "on", init=str(span_folder)))
    before, after = (load_file(place / OBJECTIVE_HEADS) for place in (span_folder, tmp_path / "on"))
    for name in before:
        torch.testing.assert_close(after[name], before[name], rtol=0, atol=1e-6)


def test_what_is_missing_or_not_trained_is_said(span_folder, toy_shards, tmp_path, caplog) -> None:
    with caplog.at_level(logging.WARNING):
        made = module("roberta", toy_shards, span_folder, "model.variant=bert")
    assert "nothing trains the sbo head of the model: left out" in caplog.text
    save_result(made, open_corpus(toy_shards).tokenizer(), tmp_path, Ranks())
    assert not (tmp_path / OBJECTIVE_HEADS).exists()
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        module("spanbert", toy_shards, tmp_path)
    assert "the model has no sbo head yet: these begin at random" in caplog.text


def test_a_result_without_heads_removes_those_of_another(span_folder, copy, toy_shards) -> None:
    made = module("roberta", toy_shards, span_folder, "model.variant=bert")
    save_result(made, open_corpus(toy_shards).tokenizer(), copy, Ranks())
    assert not (copy / OBJECTIVE_HEADS).exists()
    assert "objective_heads" not in json.loads((copy / "bertsmith.json").read_text())


def test_a_head_that_does_not_fit_is_refused_by_name(copy, toy_shards) -> None:
    kept = load_file(copy / OBJECTIVE_HEADS)
    save_file({**kept, "sbo.places.weight": torch.zeros(3, 200)}, copy / OBJECTIVE_HEADS)
    with pytest.raises(TensorMismatchError, match=r"1 tensors do not fit: sbo\.places\.weight"):
        module("spanbert", toy_shards, copy)
    kept.pop("sbo.bias")
    save_file(kept, copy / OBJECTIVE_HEADS)
    with pytest.raises(TensorMismatchError, match=r"sbo\.bias"):
        module("spanbert", toy_shards, copy)


def test_with_a_broken_head_nothing_is_written(copy, tmp_path) -> None:
    loaded = load_model(copy)
    heads = objective_heads({"sbo.bias": torch.tensor([1.0, torch.nan])})
    with pytest.raises(TensorMismatchError, match=r"sbo\.bias holds values that are not finite"):
        save_model(loaded.model, loaded.tokenizer, tmp_path / "new", extras=heads)
    assert not (tmp_path / "new").exists()


def test_rewriting_a_folder_keeps_its_heads(copy, tmp_path) -> None:
    before = load_file(copy / OBJECTIVE_HEADS)
    convert(copy, tmp_path / "clean")
    extend_model(copy, ["zyzzyva"], tmp_path / "grown")
    for folder in ("clean", "grown"):
        after = load_file(tmp_path / folder / OBJECTIVE_HEADS)
        assert before.keys() == after.keys()
        assert all(torch.equal(before[name], after[name]) for name in before), folder


@pytest.mark.parametrize(
    ("named", "error"),
    [
        ("../elsewhere.safetensors", UnsafeFileError),
        ("heads.bin", FolderError),
        (["a"], FolderError),
        ("missing.safetensors", FolderError),
    ],
)
def test_a_folder_cannot_steer_the_reader_elsewhere(copy, toy_shards, named, error) -> None:
    (copy.parent / "elsewhere.safetensors").write_bytes((copy / OBJECTIVE_HEADS).read_bytes())
    (copy / "bertsmith.json").write_text(json.dumps({"objective_heads": named}))
    with pytest.raises(error):
        module("spanbert", toy_shards, copy)
