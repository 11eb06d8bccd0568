"""Short runs of the recipes on a toy corpus: losses fall, the folder is whole, resume is exact."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from toy_corpus import short_recipe, toy_corpus

from bertsmith.config import to_toml
from bertsmith.errors import ConfigError, FolderError
from bertsmith.folders.read import load_model
from bertsmith.training.loop.progress import Progress
from bertsmith.training.pretrain.pretrain import Job, pretrain
from bertsmith.training.pretrain.recipe import load_recipe

FAST = ("optimizer.lr=5e-3",)


def losses(out: Path) -> list[dict[str, float]]:
    rows = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    return [row["losses"] for row in rows if row["kind"] == "train"]


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("bert", FAST),
        ("electra", FAST),
        ("spanbert", FAST),
        ("albert", ("optimizer.lr=0.02",)),
        ("fast", ("optimizer={name='muon', lr=0.01, rest_lr=0.01}", "averaging.every=1")),
        ("nezha", ("optimizer={name='adamw', lr=5e-3}",)),
    ],
)
def test_the_loss_of_a_recipe_falls(name, more, toy_shards, tmp_path) -> None:
    out = tmp_path / name
    outcome = pretrain(Job(recipe=short_recipe(name, *more), corpus=toy_shards, out=out))
    curve = [row["mlm"] for row in losses(out)]
    assert len(curve) == 4
    assert curve[-1] < 0.8 * curve[0]
    assert outcome.evaluation is not None
    assert outcome.evaluation.losses["mlm"] < 0.8 * curve[0]
    assert load_model(out).model.spec.layers == 2
    assert load_recipe(out / "recipe.toml") == short_recipe(name, *more)


def test_chinese_words_and_byte_pieces_run_as_well(tmp_path) -> None:
    chinese = toy_corpus(tmp_path / "zh", chinese=True, size=80)
    recipe = short_recipe("bert-wwm-zh", *FAST, steps=5)
    pretrain(Job(recipe=recipe, corpus=chinese, out=tmp_path / "wwm"))
    assert (tmp_path / "wwm" / "vocab.txt").exists()
    pieces = toy_corpus(tmp_path / "bpe", kind="byte-bpe", size=400)
    pretrain(
        Job(recipe=short_recipe("roberta", *FAST, steps=5), corpus=pieces, out=tmp_path / "ro")
    )
    assert load_model(tmp_path / "ro").model.spec.positions.first == 2


def test_an_interrupted_run_ends_as_an_uninterrupted_one(toy_shards, tmp_path) -> None:
    recipe = short_recipe("electra", *FAST, "save.every=4", steps=10)
    whole = Job(recipe=recipe, corpus=toy_shards, out=tmp_path / "whole")
    broken = Job(recipe=recipe, corpus=toy_shards, out=tmp_path / "broken")
    pretrain(whole)

    class Killed(Exception):
        pass

    def die(look: Progress) -> None:
        if look.step == 7:
            raise Killed

    with pytest.raises(Killed):
        pretrain(broken, watch=die)
    assert not (broken.out / "config.json").exists()
    seen: list[int] = []
    outcome = pretrain(broken, watch=lambda look: seen.append(look.step))
    assert outcome.status == "finished"
    assert seen == list(range(5, 11)), "goes on from the checkpoint of step 4"
    for name in ("model.safetensors", "generator/model.safetensors"):
        assert (whole.out / name).read_bytes() == (broken.out / name).read_bytes()
    assert losses(whole.out) == losses(broken.out)
    pretrain(broken)  # a finished run again: nothing changes
    assert (whole.out / "model.safetensors").read_bytes() == (
        broken.out / "model.safetensors"
    ).read_bytes()


def test_an_edited_recipe_is_refused_by_name_unless_accepted(toy_shards, tmp_path) -> None:
    out = tmp_path / "run"
    pretrain(Job(recipe=short_recipe("bert", *FAST, steps=4), corpus=toy_shards, out=out))
    kept = (out / "recipe.toml").read_text()
    changed = short_recipe("bert", *FAST, "program.mask.rate=0.3", steps=4)
    with pytest.raises(ConfigError, match=r"mask\.rate was 0\.15 and is 0\.3"):
        pretrain(Job(recipe=changed, corpus=toy_shards, out=out))
    assert (out / "recipe.toml").read_text() == kept
    longer = short_recipe("bert", *FAST, steps=6)
    with pytest.raises(ConfigError, match=r"schedule\.steps"):
        pretrain(Job(recipe=longer, corpus=toy_shards, out=out))
    outcome = pretrain(Job(recipe=longer, corpus=toy_shards, out=out, accept=["schedule.steps"]))
    assert outcome.step == 6
    held_out = short_recipe("bert", *FAST, "eval.held_out=0.2", steps=6)
    with pytest.raises(ConfigError, match="held_out"):
        pretrain(Job(recipe=held_out, corpus=toy_shards, out=out))


def test_another_corpus_is_refused(toy_shards, tmp_path) -> None:
    recipe = short_recipe("bert", *FAST, steps=2)
    pretrain(Job(recipe=recipe, corpus=toy_shards, out=tmp_path / "run"))
    other = toy_corpus(tmp_path / "other", size=100)
    with pytest.raises(ConfigError, match=r"corpus\.content"):
        pretrain(Job(recipe=recipe, corpus=other, out=tmp_path / "run"))


def test_going_on_from_a_model_begins_with_its_weights(toy_shards, tmp_path, caplog) -> None:
    first = tmp_path / "first"
    pretrain(Job(recipe=short_recipe("bert", *FAST), corpus=toy_shards, out=first))
    settings = ("optimizer.lr=1e-9", "program.objectives.nsp=0", "model.init=local_attention")
    recipe = short_recipe("bert-wwm", *settings, steps=2)
    out = tmp_path / "second"
    outcome = pretrain(Job(recipe=recipe, corpus=toy_shards, out=out, init=str(first)))
    before, after = load_model(first).model, load_model(out).model
    for name, weight in after.named_parameters():
        torch.testing.assert_close(weight, before.get_parameter(name), rtol=0, atol=1e-6)
    assert "heads.next_sentence" in caplog.text
    assert "model.init does not change them" in caplog.text
    assert outcome.evaluation is not None
    assert outcome.evaluation.losses["mlm"] < 3.5


def test_a_model_with_another_vocabulary_or_shape_is_refused(toy_shards, tmp_path) -> None:
    first = tmp_path / "first"
    pretrain(Job(recipe=short_recipe("bert", steps=1), corpus=toy_shards, out=first))
    other = toy_corpus(tmp_path / "other", size=100)
    recipe = short_recipe("bert", steps=1)
    with pytest.raises(FolderError, match="is not that of the corpus"):
        pretrain(Job(recipe=recipe, corpus=other, out=tmp_path / "a", init=str(first)))
    albert = short_recipe("albert", steps=1)
    with pytest.raises(ConfigError, match="is a bert model"):
        pretrain(Job(recipe=albert, corpus=toy_shards, out=tmp_path / "b", init=str(first)))
    deeper = short_recipe("bert", "model.layers=3", steps=1)
    with pytest.raises(ConfigError, match=r"model\.layers cannot be chosen"):
        pretrain(Job(recipe=deeper, corpus=toy_shards, out=tmp_path / "c", init=str(first)))


def test_what_a_killed_process_left_of_the_result_is_no_obstacle(toy_shards, tmp_path) -> None:
    out = tmp_path / "run"
    job = Job(recipe=short_recipe("bert", steps=2), corpus=toy_shards, out=out)
    pretrain(job)
    weights = (out / "model.safetensors").read_bytes()
    shutil.copytree(out / "checkpoints", out / ".model")
    (out / "config.json").unlink()
    pretrain(job)
    assert (out / "model.safetensors").read_bytes() == weights
    assert not (out / ".model").exists()


def test_a_run_by_the_clock_ends_in_time(toy_shards, tmp_path) -> None:
    recipe = short_recipe("fast", 'schedule.budget="4s"')
    outcome = pretrain(Job(recipe=recipe, corpus=toy_shards, out=tmp_path / "run"))
    assert outcome.status == "finished"
    assert 0.5 < outcome.seconds < 6
    assert "budget = 4.0" in to_toml(recipe)
