"""Training ELMo from a stream of words to a folder; the same call resumes."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np
import torch

from bertsmith.classic.elmo.folder import build_elmo, save_elmo
from bertsmith.classic.elmo.language_model import FORWARD_BACKWARD, BidirectionalLm
from bertsmith.classic.elmo.model import ElmoModel
from bertsmith.classic.elmo.settings import ElmoSettings
from bertsmith.classic.elmo.workload import ElmoWorkload
from bertsmith.classic.neural.train import (
    LineJob,
    check_ranks,
    line_run,
    put_result,
    split_stream,
)
from bertsmith.classic.neural.workload import noise_table
from bertsmith.models.word_encoders.elmo_network import initialize_elmo
from bertsmith.random_keys import key_of
from bertsmith.text.whole_words.characters import count_cut
from bertsmith.training.execution.execution import Execution
from bertsmith.training.loop.loop import train
from bertsmith.training.loop.progress import Watcher
from bertsmith.training.loop.run import Outcome

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ElmoJob(LineJob):
    """The training of an ELMo model."""

    settings: ElmoSettings


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
    check_ranks(execution)
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
    noise = noise_table(settings.softmax, counts, seed=settings.seed)
    workload = ElmoWorkload(settings, words, lines, held_out, noise)
    execution.prepare(module)
    run = line_run(
        job,
        settings,
        module,
        workload,
        held_out,
        execution=execution,
        watch=watch,
        parts=FORWARD_BACKWARD,
    )
    outcome = train(run)
    if outcome.status != "finished":
        return ElmoResult(outcome=outcome, cut=cut)
    model = ElmoModel(settings=settings, words=words, module=module.eval().to("cpu"), rule=job.rule)
    put_result(job.out, lambda staging: save_elmo(model, staging), execution)
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
