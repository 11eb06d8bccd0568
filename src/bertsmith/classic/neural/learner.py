"""What learns a neural language model: from a stream of words to a folder of least perplexity."""

from __future__ import annotations

from bertsmith.classic.neural.folder import save_neural
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
from bertsmith.classic.neural.network import NeuralNetwork
from bertsmith.classic.neural.scoring import NeuralLm
from bertsmith.classic.neural.settings import NeuralSettings
from bertsmith.classic.neural.workload import NeuralWorkload, noise_table
from bertsmith.training.execution.execution import Execution
from bertsmith.training.learner import Learner, Prepared
from bertsmith.training.loop.run import Outcome

NeuralJob = LineJob[NeuralSettings]


def neural_learner() -> Learner[NeuralJob, NeuralNetwork, FinishedLm[NeuralLm]]:
    """What learns Bengio's network, an LSTM or a GRU."""
    return Learner(
        name="training of a neural language model",
        facts=line_facts,
        prepare=lambda job, execution, _: _prepare(job, execution),
        finish=_finish,
    )


def _prepare(job: NeuralJob, execution: Execution) -> Prepared[NeuralNetwork]:
    check_ranks(execution)
    settings = job.settings
    lines, held_out = split_lines(job)
    counts = class_counts(job, lines)
    network = settings.build(counts)
    noise = noise_table(settings.softmax, counts, seed=settings.seed)
    workload = NeuralWorkload(settings, lines, held_out, noise)
    execution.prepare(network)
    return Prepared(inputs=line_inputs(job, network, workload, execution), made=network)


def _finish(
    job: NeuralJob, network: NeuralNetwork, outcome: Outcome, _: Execution
) -> FinishedLm[NeuralLm]:
    model = NeuralLm(
        settings=job.settings,
        words=tuple(job.stream.words),
        network=network.eval().to("cpu"),
        rule=job.rule,
    )
    return FinishedLm(model=model, write=save_neural, figures=held_out_figures(outcome))
