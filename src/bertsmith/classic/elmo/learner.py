"""What learns ELMo: from a stream of words to a folder of least perplexity."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import torch

from bertsmith.classic.elmo.folder import build_elmo, save_elmo
from bertsmith.classic.elmo.language_model import FORWARD_BACKWARD, BidirectionalLm
from bertsmith.classic.elmo.model import ElmoModel
from bertsmith.classic.elmo.settings import ElmoSettings
from bertsmith.classic.elmo.workload import ElmoWorkload
from bertsmith.classic.neural.line_job import (
    FinishedLm,
    LineJob,
    check_ranks,
    class_counts,
    held_out_figures,
    line_facts,
    line_inputs,
    split_lines,
)
from bertsmith.classic.neural.workload import noise_table
from bertsmith.models.word_encoders.elmo_network import initialize_elmo
from bertsmith.random_keys import key_of
from bertsmith.text.whole_words.characters import count_cut
from bertsmith.training.execution.execution import Execution
from bertsmith.training.learner import Learner, Prepared
from bertsmith.training.loop.run import Outcome

log = logging.getLogger(__name__)

ElmoJob = LineJob[ElmoSettings]


@dataclass(frozen=True, slots=True, kw_only=True)
class ElmoModule:
    """What is trained, and what became of the words."""

    module: BidirectionalLm
    notes: tuple[str, ...]


def elmo_learner() -> Learner[ElmoJob, ElmoModule, FinishedLm[ElmoModel]]:
    """What learns ELMo; its figures have the perplexity of each direction, too."""
    return Learner(
        name="training of ELMo",
        facts=line_facts,
        prepare=lambda job, execution, _: _prepare(job, execution),
        finish=_finish,
    )


def _prepare(job: ElmoJob, execution: Execution) -> Prepared[ElmoModule]:
    check_ranks(execution)
    settings, words = job.settings, tuple(job.stream.words)
    lines, held_out = split_lines(job)
    notes = _cut_notes(words, settings.model.length)
    for note in notes:
        log.warning("%s", note)
    counts = class_counts(job, lines)
    module = build_elmo(settings, counts)
    draw_elmo(module, settings)
    noise = noise_table(settings.softmax, counts, seed=settings.seed)
    workload = ElmoWorkload(settings, words, lines, held_out, noise)
    execution.prepare(module)
    inputs = line_inputs(job, module, workload, execution, parts=FORWARD_BACKWARD)
    return Prepared(inputs=inputs, made=ElmoModule(module=module, notes=notes))


def _cut_notes(words: tuple[str, ...], length: int) -> tuple[str, ...]:
    """What there is to say of words that are longer than the model reads."""
    cut = count_cut(words[1:], length)
    if not cut:
        return ()
    text = f"{cut} of {len(words)} words have more than {length - 2} bytes"
    return (f"{text}: the model reads their first ones",)


def _finish(
    job: ElmoJob, made: ElmoModule, outcome: Outcome, _: Execution
) -> FinishedLm[ElmoModel]:
    model = ElmoModel(
        settings=job.settings,
        words=tuple(job.stream.words),
        module=made.module.eval().to("cpu"),
        rule=job.rule,
    )
    return FinishedLm(
        model=model, write=save_elmo, figures=held_out_figures(outcome), notes=made.notes
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
