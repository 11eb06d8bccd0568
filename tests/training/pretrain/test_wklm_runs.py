"""Whole runs of WKLM: equal on two ranks and after a kill, a folder that transformers loads."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from toy_corpus import entity_file, needed_settings, short_recipe

from bertsmith.corpus.shards import open_corpus
from bertsmith.errors import ConfigError, TensorMismatchError
from bertsmith.folders.extras import OBJECTIVE_HEADS
from bertsmith.folders.read import load_model
from bertsmith.training.loop.progress import Progress
from bertsmith.training.pretrain.model import build_module
from bertsmith.training.pretrain.pretrain import Job, pretrain
from bertsmith.training.pretrain.recipe import PretrainRecipe
from bertsmith.training.pretrain.workload import PretrainWorkload

PARTS = ("mlm", "replaced", "aligned")


def recipe(*more: str, steps: int = 6) -> PretrainRecipe:
    return short_recipe("wklm", *needed_settings("wklm"), "input.max_length=48", *more, steps=steps)


@pytest.fixture(scope="module")
def trained(toy_shards, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("wklm") / "run"
    heard: list[str] = []
    outcome = pretrain(Job(recipe=recipe(), corpus=toy_shards, out=out), notice=heard.append)
    assert set(outcome.evaluation.losses) == set(PARTS)
    assert "1 (animal) types of one entity, never replaced" in heard[1]
    assert "mentions in the first" in heard[2]
    return out


@torch.no_grad()
def test_two_ranks_together_have_the_losses_of_one(toy_shards) -> None:
    files = open_corpus(toy_shards)
    settings = recipe("input.max_length=16", "batch.sequences=4", "batch.micro_tokens=32")
    alone = PretrainWorkload(settings, files)
    halves = [PretrainWorkload(settings, files, rank=rank, world=2) for rank in (0, 1)]
    module = build_module(settings, files, alone.program).eval()

    def sums(works: list[PretrainWorkload], held_out: bool) -> dict[str, tuple[float, int]]:
        total = dict.fromkeys(PARTS, (0.0, 0))
        for work in works:
            steps = [batch for step in range(6) for batch in work.micro_batches(step, 0.3)]
            for batch in work.held_out() if held_out else steps:
                for part, loss in work.loss(module, batch)[0].items():
                    total[part] = (total[part][0] + loss.sum.item(), total[part][1] + loss.count)
        return total

    for held_out in (False, True):
        whole, parts = sums([alone], held_out), sums(halves, held_out)
        for part in PARTS:
            assert parts[part][1] == whole[part][1] > 0
            assert parts[part][0] == pytest.approx(whole[part][0], rel=1e-5)
    whole_batch, half = alone.micro_batches(1, 0.3), halves[0].micro_batches(1, 0.3)
    candidates = {tuple(batch.candidates.tolist()) for batch in [*whole_batch, *half]}
    assert len(whole_batch) > len(half)
    assert len(candidates) == 1
    read = [batch.candidates[batch.texts.targets["aligned"].of].tolist() for batch in half]
    assert len({entity for one in read for entity in one}) < len(*candidates)


def test_no_text_outgrows_the_longest(toy_shards) -> None:
    files, settings = open_corpus(toy_shards), recipe("program.rate=0.5")
    work = PretrainWorkload(settings, files)
    lengths = [
        length
        for step in range(10)
        for batch in work.micro_batches(step, 0.0)
        for length in batch.inputs.layout.lengths
    ]
    assert 44 <= max(lengths) <= 48


def test_a_killed_run_ends_with_the_bytes_of_an_uninterrupted_one(toy_shards, tmp_path) -> None:
    settings = recipe("save.every=4", steps=10)
    whole = Job(recipe=settings, corpus=toy_shards, out=tmp_path / "whole")
    broken = Job(recipe=settings, corpus=toy_shards, out=tmp_path / "broken")
    pretrain(whole)

    class Killed(Exception):
        pass

    def die(look: Progress) -> None:
        if look.step == 7:
            raise Killed

    with pytest.raises(Killed):
        pretrain(broken, watch=die)
    assert pretrain(broken).status == "finished"
    for name in ("model.safetensors", OBJECTIVE_HEADS):
        assert (whole.out / name).read_bytes() == (broken.out / name).read_bytes()


def test_a_changed_list_is_refused_by_name_when_a_run_resumes(toy_shards, tmp_path) -> None:
    mine = tmp_path / "mine.tsv"
    shutil.copy(entity_file(), mine)
    settings = recipe(f"program.entities={mine}", "program.aligned=0", steps=2)
    job = Job(recipe=settings, corpus=toy_shards, out=tmp_path / "run")
    pretrain(job)
    mine.write_text(mine.read_text() + "a cat\tanimal\n")
    with pytest.raises(ConfigError, match=r"file\.\S*mine\.tsv was"):
        pretrain(job)


def test_transformers_loads_the_folder_and_gives_the_same_logits(trained) -> None:
    transformers = pytest.importorskip("transformers")
    reference = transformers.BertForMaskedLM.from_pretrained(trained).eval()
    loaded = load_model(trained)
    text = "the man went to the store."
    ids = torch.from_numpy(loaded.tokenizer.encode(text).ids).long()
    from bertsmith.nn import Inputs, Layout

    with torch.no_grad():
        rows = loaded.model.eval()(Inputs(ids, Layout.of((len(ids),)))).hidden
        ours = loaded.model.logits("masked_lm", rows)
        theirs = reference(input_ids=ids[None]).logits[0]
    torch.testing.assert_close(ours, theirs, rtol=2e-5, atol=2e-5)


def test_heads_are_stored_and_continued_with_the_same_list_only(
    trained, toy_shards, tmp_path
) -> None:
    stored = load_file(trained / OBJECTIVE_HEADS)
    assert {name.partition(".")[0] for name in stored} == {"replaced", "aligned"}
    files, settings = open_corpus(toy_shards), recipe("run.seed=9")
    work = PretrainWorkload(settings, files)
    module = build_module(settings, files, work.program, init=trained)
    for name, parameter in module.own_heads.named_parameters():
        assert torch.equal(parameter, stored[name]), name
    other = tmp_path / "other.tsv"
    lines = entity_file().read_text().splitlines()
    other.write_text("\n".join([*lines[1:], lines[0]]))  # as many, in another order
    changed = recipe(f"program.entities={other}")
    with pytest.raises(TensorMismatchError, match=r"aligned\.entities"):
        build_module(changed, files, PretrainWorkload(changed, files).program, init=trained)
