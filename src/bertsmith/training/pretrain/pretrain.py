"""Pre-training from a recipe and a corpus to a model folder; the same call again resumes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from bertsmith.config import to_toml
from bertsmith.corpus.shards import Corpus, open_corpus
from bertsmith.errors import ConfigError
from bertsmith.files.atomic_file import write_staged
from bertsmith.files.atomic_folder import make_folder
from bertsmith.files.digest import file_digest, fingerprint, json_digest
from bertsmith.objectives.program import PretrainModule
from bertsmith.training.checkpoints.resume import Fact, flatten
from bertsmith.training.execution.execution import Execution
from bertsmith.training.execution.rank_sync import on_first
from bertsmith.training.learner import LoopInputs, loop_run
from bertsmith.training.loop.loop import train
from bertsmith.training.loop.progress import Watcher
from bertsmith.training.loop.run import Outcome
from bertsmith.training.pretrain.model import build_module, save_result
from bertsmith.training.pretrain.recipe import PretrainRecipe
from bertsmith.training.pretrain.workload import PretrainWorkload

log = logging.getLogger(__name__)

RECIPE = "recipe.toml"
# The loop records these itself, under the same names; what a recipe is called changes nothing.
RECORDED = ("about", "optimizer", "schedule", "averaging")
# Recorded as what they lead to (`seed`, `precision`), or without effect on what is learned.
INDIRECT = ("run.seed", "run.precision", "run.sharding", "run.timeout")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is to be pre-trained, and where the result goes.

    `init` is a model to continue from; `accept` names settings whose change since the last
    checkpoint is wanted.
    """

    recipe: PretrainRecipe
    corpus: Path
    out: Path
    init: str | None = None
    accept: Collection[str] = ()


def pretrain(
    job: Job,
    *,
    execution: Execution | None = None,
    watch: Watcher | None = None,
    notice: Callable[[str], None] = log.info,
) -> Outcome:
    """Train, or resume training, and write the model folder when the schedule has ended.

    `notice` gets what the program reports of the texts.
    """
    execution = execution or Execution()
    recipe = job.recipe
    check_shares(recipe, execution.ranks.world)
    corpus = open_corpus(job.corpus)
    work = PretrainWorkload(recipe, corpus, rank=execution.ranks.rank, world=execution.ranks.world)
    module = build_module(recipe, corpus, work.program, init=job.init, device=execution.device.type)
    execution.prepare(module)
    inputs = LoopInputs(
        model=module,
        workload=work,
        schedule=recipe.schedule,
        optimizer=recipe.optimizer,
        save=recipe.save,
        averaging=recipe.averaging,
        evaluation=recipe.eval,
        seed=recipe.run.seed,
        log=recipe.log,
        stages=recipe.program.stages,
    )
    run = loop_run(job, inputs, facts(job, corpus, execution), execution, watch)
    on_first(execution.ranks, lambda: _keep_recipe(job, replace=False))
    if execution.ranks.is_first:
        for remark in work.account():
            notice(remark)
    outcome = train(run)
    if outcome.status == "finished":
        with execution.ranks.watched():
            _finish(job, corpus, module, execution)
    return outcome


def check_shares(recipe: PretrainRecipe, world: int) -> None:
    """Refuse a batch that cannot be shared out before hours have gone into an earlier stage."""
    fewest = min(recipe.batch.texts(inputs.max_length) for inputs in recipe.inputs)
    for start in (0.0, *recipe.program.stages):
        recipe.program.allotted(fewest, start)
    if recipe.run.sharding == "fsdp" and world > 1 and not recipe.program.uniform:
        raise ConfigError(
            "sharded ranks must train the same weights in every pass, and the tasks of "
            f'{recipe.program.kind} have heads of their own: set run.sharding="ddp"'
        )
    if recipe.run.sharding == "fsdp" and fewest < world:
        raise ConfigError(
            f"a batch of {fewest} texts cannot be shared by {world} sharded ranks: each needs at "
            "least one text per step; raise batch.tokens or batch.sequences, or take fewer devices"
        )


def facts(job: Job, corpus: Corpus, execution: Execution) -> dict[str, Fact]:
    """What a checkpoint records of a job besides what the loop records: see `Run`."""
    tree = job.recipe.model_dump(mode="json")
    flat = flatten({name: part for name, part in tree.items() if name not in RECORDED})
    return {
        **{name: value for name, value in flat.items() if name not in INDIRECT},
        "corpus.content": json_digest(corpus.manifest["files"]),
        "corpus.vocabulary": corpus.vocabulary,
        "corpus.held_out": job.recipe.eval.held_out,
        **{f"file.{path}": file_digest(path) for path in job.recipe.program.files},
        "init": job.init,
        "precision": execution.precision.name,
    }


def _keep_recipe(job: Job, *, replace: bool) -> None:
    # Decided by the rank that writes: others may look before or after it wrote.
    if not replace and (job.out / RECIPE).exists():
        return
    make_folder(job.out)
    head = f"# The settings of this run; sha256 {fingerprint(job.recipe)}\n"
    write_staged(job.out / RECIPE, (head + to_toml(job.recipe)).encode())


def _finish(job: Job, corpus: Corpus, module: PretrainModule, execution: Execution) -> None:
    save_result(module, corpus.tokenizer(), job.out, execution.ranks)
    on_first(execution.ranks, lambda: _keep_recipe(job, replace=True))
    execution.ranks.barrier()
