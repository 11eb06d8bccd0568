"""Tasks that begin one after another: which are learned when, resumed, on two ranks, in figures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from continual_text import CHINESE, ENGLISH, continual_corpus, short_ernie
from fork_client import ForkServer
from safetensors.numpy import load_file
from stop_after import StopAfter
from torch.nn import functional as F

from bertsmith.config import to_toml
from bertsmith.corpus.shards import Corpus
from bertsmith.errors import ConfigError
from bertsmith.folders.read import load_model
from bertsmith.nn.inputs import Inputs
from bertsmith.objectives.batch import PretrainBatch
from bertsmith.report.curves import curves_page, read_log
from bertsmith.training.execution.execution import choose_execution
from bertsmith.training.pretrain.model import build_module
from bertsmith.training.pretrain.pretrain import Job, check_shares, pretrain
from bertsmith.training.pretrain.recipe import PretrainRecipe, load_recipe
from bertsmith.training.pretrain.workload import PretrainWorkload

STEPS = 20
BEGIN = {  # of the recipe
    "knowledge": 0.0,
    "capital": 0.2,
    "elsewhere": 0.35,
    "reorder": 0.5,
    "distance": 0.65,
    "relation": 0.75,
}
IDS = {name: number for number, name in enumerate(BEGIN)}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return continual_corpus(tmp_path_factory.mktemp("english"), ENGLISH, copies=6)


@pytest.fixture(scope="module")
def finished(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Job:
    """A run without interruption."""
    out = tmp_path_factory.mktemp("finished") / "out"
    job = Job(recipe=short_ernie("save.every=3"), corpus=corpus.path, out=out)
    assert pretrain(job, execution=choose_execution(job.recipe.run)).status == "finished"
    return job


def learned(workload: PretrainWorkload, step: int) -> dict[str, int]:
    """The texts of each task in a step; every row must have the id of its task."""
    found: dict[str, int] = {}
    for batch in workload.micro_batches(step, step / STEPS):
        assert isinstance(batch, PretrainBatch)
        (name,) = batch.targets
        assert set(batch.inputs.channels["tasks"].tolist()) == {IDS[name]}
        found[name] = found.get(name, 0) + len(batch.inputs.layout.lengths)
    return found


@pytest.mark.parametrize("old", ["keep", "drop"])
def test_a_step_learns_the_tasks_that_have_begun(old: str, corpus: Corpus) -> None:
    recipe = short_ernie(f'program.old="{old}"')
    workload = PretrainWorkload(recipe, corpus)
    for step in range(STEPS):
        begun = [name for name, after in BEGIN.items() if after <= step / STEPS]
        found = learned(workload, step)
        assert sum(found.values()) == 14
        if old == "drop":
            assert found == {begun[-1]: 14}
        else:
            assert list(found) == begun
            rest = [count for name, count in found.items() if name != "knowledge"]
            assert max(rest, default=0) - min(rest, default=0) <= 1
            assert found["knowledge"] / 14 == pytest.approx(5 / (4 + len(begun)), abs=1 / 14)
    again = PretrainWorkload(recipe, corpus)
    assert learned(again, 15) == learned(workload, 15)


def test_the_tokens_of_a_step_are_estimated_over_all_stages(corpus: Corpus) -> None:
    workload = PretrainWorkload(short_ernie(), corpus)
    read = [
        sum(batch.tokens for batch in workload.micro_batches(step, (step % STEPS) / STEPS))
        for step in range(5 * STEPS)
    ]
    assert workload.step_tokens() == pytest.approx(float(np.mean(read)), rel=0.05)
    counts = {name: one.count(0) for name, one in workload._stages[0].items()}
    most = max(learned(workload, 3)["knowledge"] / counts["knowledge"], 2 / counts["relation"])
    assert workload.epochs(100) == np.ceil(100 * most)


def contents(workload: PretrainWorkload, step: int) -> list[tuple[object, ...]]:
    """Everything that is read and predicted of every text of a step."""
    found = []
    for batch in workload.micro_batches(step, step / STEPS):
        ((name, targets),) = batch.targets.items()
        rows = batch.rows[targets.at]
        owner = torch.repeat_interleave(
            torch.arange(len(batch.inputs.layout.lengths)),
            torch.tensor(batch.inputs.layout.lengths),
        )[rows]
        for text, ids in enumerate(batch.inputs.ids.split(list(batch.inputs.layout.lengths))):
            own = targets.of[owner == text].tolist()
            found.append((name, tuple(ids.tolist()), tuple(own)))
    return sorted(found)


def test_two_ranks_learn_what_one_learns(corpus: Corpus) -> None:
    recipe = short_ernie()
    alone = PretrainWorkload(recipe, corpus)
    ranks = [PretrainWorkload(recipe, corpus, rank=rank, world=2) for rank in (0, 1)]
    for step in (2, 5, 9, 12, 19):
        whole = contents(alone, step)
        assert sorted(one for rank in ranks for one in contents(rank, step)) == whole
        assert len(whole) == 14


def test_losses_are_those_of_plain_sums(corpus: Corpus) -> None:
    recipe = short_ernie("model.dropout=0")
    workload = PretrainWorkload(recipe, corpus)
    module = build_module(recipe, corpus, workload.program).eval()
    model = module.model
    seen = set()
    for batch in workload.micro_batches(19, 0.95):
        losses, scores = module(batch)
        ((name, targets),) = batch.targets.items()
        hidden = model(batch.inputs).hidden[batch.rows[targets.at]]
        if name == "knowledge":
            logits = model.logits("masked_lm", hidden)
        else:
            texts = name in ("reorder", "distance", "relation")
            head = module.own_heads[name]
            rows = torch.tanh(model.encoder.pooler(hidden)) if texts else hidden
            logits = rows @ head.weight.T + head.bias
        total = sum(F.cross_entropy(one, of) for one, of in zip(logits, targets.of, strict=True))
        assert losses[name].count == scores[name].count == len(targets.of)
        torch.testing.assert_close(losses[name].sum, total, rtol=1e-4, atol=1e-4)
        assert int(scores[name].correct) == int((logits.argmax(-1) == targets.of).sum())
        seen.add(name)
    assert seen == set(BEGIN)


def assert_same_result(one: Job, other: Job) -> None:
    for name in ("model.safetensors", "objective_heads.safetensors"):
        first, second = (load_file(job.out / name) for job in (one, other))
        assert first.keys() == second.keys()
        assert all(np.array_equal(first[tensor], second[tensor]) for tensor in first)
    results = [json.loads((job.out / "result.json").read_text()) for job in (one, other)]
    assert results[0]["stages"] == results[1]["stages"]


@pytest.mark.parametrize("looks", [4, 15])
def test_a_stopped_run_resumes_with_the_tasks_of_its_stage(
    looks: int, corpus: Corpus, finished: Job, tmp_path: Path
) -> None:
    job = Job(recipe=finished.recipe, corpus=corpus.path, out=tmp_path / "cut")
    stopped = pretrain(job, execution=choose_execution(job.recipe.run, stop=StopAfter(looks)))
    assert stopped.status == "stopped"
    assert 0 < stopped.step < STEPS
    assert pretrain(job, execution=choose_execution(job.recipe.run, job.out)).status == "finished"
    assert_same_result(job, finished)


def test_a_killed_run_resumes_to_the_same_bits(
    corpus: Corpus, finished: Job, tmp_path: Path
) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(to_toml(finished.recipe), encoding="utf-8")
    order = {
        "recipe": str(recipe),
        "corpus": str(corpus.path),
        "out": str(tmp_path / "killed"),
        "init": None,
        "threads": torch.get_num_threads(),
        "die_after": 13,  # in the last but one stage, after its beginning was evaluated
    }
    (tmp_path / "job.json").write_text(json.dumps(order))
    module = "bertsmith.training.pretrain.resume_proof"
    killed = subprocess.run(
        [sys.executable, "-m", module, str(tmp_path / "job.json")], check=False, capture_output=True
    )
    assert killed.returncode == -9, killed.stderr
    job = Job(recipe=load_recipe(recipe), corpus=corpus.path, out=tmp_path / "killed")
    again = choose_execution(job.recipe.run, job.out)
    assert pretrain(job, execution=again).status == "finished"
    assert_same_result(job, finished)


def test_two_processes_give_the_figures_of_one(
    forks: ForkServer, corpus: Corpus, finished: Job, tmp_path: Path
) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(to_toml(finished.recipe), encoding="utf-8")
    out = tmp_path / "two"
    command = ("pretrain", recipe, "--corpus", corpus.path, "--out", out)
    arguments = [*map(str, command), "--devices", "2", "--threads", "1", "--quiet"]
    forks.finish_ranks("rank command", folder=tmp_path, arguments=arguments)
    one, two = (
        json.loads((place / "result.json").read_text())["stages"] for place in (finished.out, out)
    )
    assert [stage["stage"] for stage in one] == [stage["stage"] for stage in two]
    for first, second in zip(one, two, strict=True):
        assert first["counts"] == second["counts"]
        assert second["losses"] == pytest.approx(first["losses"], rel=1e-4)


def test_every_stage_reports_every_task(finished: Job) -> None:
    result = json.loads((finished.out / "result.json").read_text())
    stages = result["stages"]
    names = list(BEGIN)
    assert [stage["stage"] for stage in stages] == [", ".join(names[: n + 1]) for n in range(6)]
    assert [stage["step"] for stage in stages] == [4, 7, 10, 13, 15, 20]
    for stage in stages:
        assert set(stage["losses"]) == set(stage["accuracy"]) == set(BEGIN)
    lines = [json.loads(line) for line in (finished.out / "log.jsonl").read_text().splitlines()]
    ended = {line["step"]: line["stages"] for line in lines if line.get("kind") == "eval"}
    assert ended == {stage["step"]: [stage["stage"]] for stage in stages[:-1]}
    trained = {line["step"]: set(line["losses"]) for line in lines if line["kind"] == "train"}
    assert trained[4] == {"knowledge"}
    assert trained[5] == {"knowledge", "capital"}
    assert trained[20] == set(BEGIN)
    page = curves_page(read_log(finished.out / "log.jsonl"), title="x")
    assert "Held-out text at the end of each stage" in page


def test_the_folder_names_the_tasks_and_continues_with_all_its_heads(
    finished: Job, corpus: Corpus, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    loaded = load_model(finished.out)
    assert loaded.model.spec.tasks == 7
    assert loaded.model.spec.pooler
    record = json.loads((finished.out / "bertsmith.json").read_text())
    assert record["tasks"] == IDS
    workload = PretrainWorkload(finished.recipe, corpus)
    recipe = finished.recipe.model_copy(update={"model": _without_size(finished.recipe)})
    module = build_module(recipe, corpus, workload.program, init=finished.out)
    assert "begin at random" not in caplog.text
    stored = load_file(finished.out / "objective_heads.safetensors")
    for name, parameter in module.own_heads.named_parameters():
        assert np.array_equal(stored[name], parameter.detach().numpy())


def _without_size(recipe: PretrainRecipe) -> object:
    return recipe.model.model_copy(update={"init": "random"})


def test_a_model_without_tasks_gets_them_as_nothing(
    finished: Job, corpus: Corpus, tmp_path: Path
) -> None:
    plain = short_ernie(
        "model.tasks=0", 'program={kind="masked", objectives={mlm=1}}', "model.init=random"
    )
    assert (
        pretrain(Job(recipe=plain, corpus=corpus.path, out=tmp_path / "plain")).status == "finished"
    )
    source = load_model(tmp_path / "plain").model
    assert source.spec.tasks == 0
    recipe = short_ernie("model.init=random")
    workload = PretrainWorkload(recipe, corpus)
    grown = build_module(recipe, corpus, workload.program, init=tmp_path / "plain").model.eval()
    ids = np.array([2, 9, 8, 7, 3])
    before = source(Inputs.of(ids, [5])).hidden
    after = grown(Inputs.of(ids, [5], channels={"tasks": np.array([0, 1, 5, 6, 6])})).hidden
    assert torch.equal(before, after)
    with pytest.raises(ConfigError, match=r"has 7 tasks and the recipe 3: set model\.tasks=7"):
        build_module(short_ernie("model.tasks=3"), corpus, workload.program, init=finished.out)


def test_what_cannot_be_learned_is_refused_by_name(
    corpus: Corpus, finished: Job, tmp_path: Path
) -> None:
    workload = PretrainWorkload(short_ernie(), corpus)
    with pytest.raises(ConfigError, match=r"ids up to 5 and the model 3 tasks.*model\.tasks=6"):
        build_module(short_ernie("model.tasks=3"), corpus, workload.program)
    few = PretrainWorkload(short_ernie("batch.sequences=4"), corpus)
    with pytest.raises(ConfigError, match=r"4 texts cannot serve 6 tasks: raise batch\.sequences"):
        few.micro_batches(19, 0.95)
    with pytest.raises(ConfigError, match="4 texts cannot serve"):  # before hours of other stages
        check_shares(few.recipe, 1)
    with pytest.raises(ConfigError, match=r'heads of their own: set run\.sharding="ddp"'):
        check_shares(short_ernie("run.sharding=fsdp"), 2)
    chinese = continual_corpus(tmp_path / "chinese", CHINESE, copies=4)
    with pytest.raises(ConfigError, match=r"Chinese has none.*program\.objectives\.capital=0"):
        PretrainWorkload(short_ernie(), chinese)
    with pytest.raises(ConfigError, match="no task begins at once"):
        short_ernie("program.objectives.knowledge.after=0.1")
    with pytest.raises(ConfigError, match="an id of its own"):
        short_ernie("program.objectives.capital={task=0}")
    bert = load_recipe("bert", ["model.size=tiny"])
    with pytest.raises(ConfigError, match=r"is a ernie model and the recipe is for bert"):
        build_module(bert, corpus, workload.program, init=finished.out)


def test_chinese_learns_the_tasks_that_it_has(tmp_path: Path) -> None:
    corpus = continual_corpus(tmp_path, CHINESE, copies=6)
    pairs = tmp_path / "clicks.tsv"
    pairs.write_text("".join(f"北京{n}\t老师喜欢北京{n}\t{n % 3}\n" for n in range(40)))
    recipe = short_ernie(
        "program.objectives.capital=0",
        "program.objectives.elsewhere=0",
        'program.objectives.relation.markers="zh"',
        f'program.objectives.relevance={{pairs="{pairs}", after=0.85}}',
        steps=8,
    )
    outcome = pretrain(Job(recipe=recipe, corpus=corpus.path, out=tmp_path / "out"))
    assert outcome.evaluation is not None
    names = {"knowledge", "reorder", "distance", "relation", "relevance"}
    assert set(outcome.evaluation.losses) == names
    pairs.write_text("x\ty\t0\n" + pairs.read_text())
    changed = Job(recipe=recipe, corpus=corpus.path, out=tmp_path / "out")
    with pytest.raises(ConfigError, match=r"clicks\.tsv was"):
        pretrain(changed)
