"""Training ELMo from a stream of words to a folder; the same call resumes."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from bertsmith.classic.elmo.folder import build_elmo, save_elmo
from bertsmith.classic.elmo.language_model import FORWARD_BACKWARD, BidirectionalLm
from bertsmith.classic.elmo.model import ElmoModel
from bertsmith.classic.elmo.settings import ElmoSettings
from bertsmith.classic.elmo.workload import ElmoWorkload
from bertsmith.classic.neural.reading import IndexedWords, WordLines
from bertsmith.classic.neural.settings import noise_chances
from bertsmith.classic.neural.softmax import NoiseWords
from bertsmith.classic.neural.train import (
    PERPLEXITY,
    lines_digest,
    perplexity_of,
    smaller_perplexity,
    split_stream,
)
from bertsmith.classic.neural.workload import NoiseTable
from bertsmith.classic.words.splitting import SplitRule
from bertsmith.errors import ConfigError
from bertsmith.files.atomic_folder import result_folder
from bertsmith.files.digest import json_digest
from bertsmith.models.words.elmo_network import initialize_elmo
from bertsmith.random_keys import key_of
from bertsmith.text.words.characters import count_cut
from bertsmith.training.checkpoints.checkpoint import CHECKPOINTS, Checkpoints
from bertsmith.training.checkpoints.resume import Fact, flatten
from bertsmith.training.execution.execution import Execution
from bertsmith.training.loop.evaluate import Evaluation, EvaluationSettings, evaluate_losses
from bertsmith.training.loop.loop import train
from bertsmith.training.loop.progress import Watcher
from bertsmith.training.loop.run import Outcome, Run

log = logging.getLogger(__name__)

# The loop records these itself, under the same names; `save` changes nothing that is learned.
LEFT_OUT = ("optimizer", "averaging", "save", "seed")


@dataclass(frozen=True, slots=True, kw_only=True)
class ElmoJob:
    """What is learned from which words, and where the result goes: nowhere if `out` is None.

    Without `held_out` the last share of the stream, as the settings say, is held out.
    """

    stream: IndexedWords
    settings: ElmoSettings
    out: Path | None = None
    held_out: IndexedWords | None = None
    accept: Collection[str] = ()
    rule: SplitRule | None = None  # how text became these words, for the folder


@dataclass(frozen=True, slots=True, kw_only=True)
class ElmoResult:
    """The result: `model` is None when the run was stopped before its end.

    `perplexities` of the held-out lines are those of each direction, line ends included; `cut`
    words of the vocabulary are longer than the model reads.
    """

    outcome: Outcome
    model: ElmoModel | None = None
    perplexities: dict[str, float] | None = None
    cut: int = 0


def train_elmo(
    job: ElmoJob, *, execution: Execution | None = None, watch: Watcher | None = None
) -> ElmoResult:
    """Train, or resume training, and write the folder with the weights of least perplexity."""
    execution = execution or Execution()
    if execution.ranks.world > 1:
        raise ConfigError("ELMo trains in one process; set devices to 1")
    settings, words = job.settings, tuple(job.stream.words)
    lines, held_out = split_stream(job.stream, job.held_out, share=settings.held_out)
    cut = count_cut(words[1:], settings.model.length)
    if cut:
        log.warning(
            "%d of %d words have more than %d bytes: the model reads their first ones",
            cut,
            len(words),
            settings.model.length - 2,
        )
    counts = np.concatenate([[len(lines)], np.asarray(job.stream.counts)]).astype(np.int64)
    module = build_elmo(settings, counts)
    draw_elmo(module, settings)
    noise = None
    if isinstance(settings.softmax, NoiseWords):
        chances = noise_chances(counts, settings.softmax)
        noise = NoiseTable(chances, samples=settings.softmax.samples, seed=settings.seed)
    workload = ElmoWorkload(settings, words, lines, held_out, noise)
    execution.prepare(module)
    outcome = train(_run(job, module, workload, held_out, execution, watch))
    if outcome.status != "finished":
        return ElmoResult(outcome=outcome, cut=cut)
    model = ElmoModel(settings=settings, words=words, module=module.eval().to("cpu"), rule=job.rule)
    if job.out is not None:
        with result_folder(job.out) as staging:
            save_elmo(model, staging)
        Checkpoints(job.out / CHECKPOINTS, ranks=execution.ranks).keep_newest()
    figures = {} if outcome.evaluation is None else outcome.evaluation.figures
    return ElmoResult(
        outcome=outcome,
        model=model,
        perplexities={name: figures[name] for name in FORWARD_BACKWARD if name in figures},
        cut=cut,
    )


def draw_elmo(module: BidirectionalLm, settings: ElmoSettings) -> None:
    """Random weights, by the seed of the settings."""
    generator = torch.Generator().manual_seed(key_of("weights", seed=settings.seed) >> 1)
    initialize_elmo(module.network, generator)
    with torch.no_grad():
        for weight in module.softmax.parameters():
            if weight.dim() == 1:
                weight.zero_()
            else:
                bound = weight.shape[1] ** -0.5
                weight.uniform_(-bound, bound, generator=generator)


def _run(
    job: ElmoJob,
    module: BidirectionalLm,
    workload: ElmoWorkload,
    held_out: WordLines,
    execution: Execution,
    watch: Watcher | None,
) -> Run:
    settings = job.settings
    schedule = settings.plan.schedule(workload.steps_of_epoch)

    def evaluate() -> Evaluation:
        losses = evaluate_losses(module, workload, execution)
        if losses is None:
            raise ConfigError("there are no held-out lines")
        each = {name: perplexity_of(losses.losses[name]) for name in FORWARD_BACKWARD}
        return replace(losses, figures={PERPLEXITY: perplexity_of(losses.total), **each})

    return Run(
        folder=job.out,
        model=module,
        workload=workload,
        schedule=schedule,
        optimizer=settings.optimizer,
        save=settings.save,
        evaluation=EvaluationSettings(held_out=0.0, every=settings.plan.every(schedule.steps)),
        averaging=settings.averaging,
        seed=settings.seed,
        facts=_facts(job, held_out, execution),
        accept=frozenset(job.accept),
        execution=execution,
        watch=watch,
        evaluate=evaluate,
        best=settings.best,
        better=smaller_perplexity,
    )


def _facts(job: ElmoJob, held_out: WordLines, execution: Execution) -> dict[str, Fact]:
    """What a checkpoint records of a job besides what the loop records: see `Run`."""
    tree = job.settings.model_dump(mode="json")
    return {
        **flatten({name: part for name, part in tree.items() if name not in LEFT_OUT}),
        "kind": job.settings.kind,
        "data.words": json_digest(list(job.stream.words)),
        "data.train": lines_digest(WordLines.of_stream(job.stream)),
        "data.held_out": lines_digest(held_out),
        "precision": execution.precision.name,
    }
