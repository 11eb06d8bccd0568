"""Training a neural language model from a stream of words to a folder; the same call resumes."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from torch import nn

from bertsmith.classic.neural.folder import save_neural
from bertsmith.classic.neural.reading import IndexedWords, WordLines
from bertsmith.classic.neural.scoring import NeuralLm
from bertsmith.classic.neural.settings import LineSettings, NeuralSettings
from bertsmith.classic.neural.workload import NeuralWorkload, noise_table
from bertsmith.classic.stream.splitting import SplitRule
from bertsmith.errors import ConfigError
from bertsmith.files.atomic_folder import result_folder
from bertsmith.files.digest import json_digest
from bertsmith.training.checkpoints.checkpoint import finish_folder
from bertsmith.training.checkpoints.resume import Fact, recorded
from bertsmith.training.execution.execution import Execution
from bertsmith.training.loop.evaluate import Evaluation, EvaluationSettings, evaluate_losses
from bertsmith.training.loop.loop import train
from bertsmith.training.loop.progress import Watcher
from bertsmith.training.loop.run import Outcome, Run
from bertsmith.training.loop.workload import Workload

# The loop records these itself, under the same names; `save` changes nothing that is learned.
LEFT_OUT = ("optimizer", "averaging", "save", "seed")
FEWEST_WORDS = 3  # of a vocabulary, the unknown word included
PERPLEXITY = "perplexity"
_BLOCK = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class NeuralResult:
    """The result: `model` is None when the run was stopped before its end.

    `perplexity` is that of the held-out lines, line ends included.
    """

    outcome: Outcome
    model: NeuralLm | None = None
    perplexity: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LineJob:
    """What is learned from which words, and where the result goes: nowhere if `out` is None.

    Without `held_out` the last share of the stream, as the settings say, is held out. `accept`
    names settings whose change since the last checkpoint is wanted.
    """

    stream: IndexedWords
    out: Path | None = None
    held_out: IndexedWords | None = None
    rule: SplitRule | None = None  # how text became these words, for the folder
    accept: Collection[str] = ()


class LineWorkload(Workload, Protocol):
    """The steps of a job; so many of them read every line once."""

    @property
    def steps_of_epoch(self) -> float:
        """May be a fraction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NeuralJob(LineJob):
    """The training of a neural language model."""

    settings: NeuralSettings


def train_neural(
    job: NeuralJob, *, execution: Execution | None = None, watch: Watcher | None = None
) -> NeuralResult:
    """Train, or resume training, and write the folder with the weights of least perplexity."""
    execution = execution or Execution()
    check_ranks(execution)
    settings = job.settings
    lines, held_out = split_lines(job)
    counts = np.concatenate([[len(lines)], np.asarray(job.stream.counts)]).astype(np.int64)
    model = settings.build(counts)
    noise = noise_table(settings.softmax, counts, seed=settings.seed)
    workload = NeuralWorkload(settings, lines, held_out, noise)
    execution.prepare(model)
    run = line_run(
        job,
        settings,
        model,
        workload,
        held_out,
        execution=execution,
        watch=watch,
    )
    outcome = train(run)
    if outcome.status != "finished":
        return NeuralResult(outcome=outcome)
    network = model.eval().to("cpu")
    result = NeuralLm(
        settings=settings, words=tuple(job.stream.words), network=network, rule=job.rule
    )
    put_result(job.out, lambda staging: save_neural(result, staging), execution)
    figures = {} if outcome.evaluation is None else outcome.evaluation.figures
    return NeuralResult(outcome=outcome, model=result, perplexity=figures.get(PERPLEXITY))


def check_ranks(execution: Execution) -> None:
    """Refuse several processes."""
    if execution.ranks.world > 1:
        raise ConfigError("language models of lines train in one process; set devices to 1")


def put_result(out: Path | None, save: Callable[[Path], None], execution: Execution) -> None:
    """Write the folder of a finished model, if there is one; older checkpoints go."""

    def write(folder: Path) -> None:
        with result_folder(folder) as staging:
            save(staging)

    finish_folder(out, write, execution.ranks)


def split_lines(job: NeuralJob) -> tuple[WordLines, WordLines]:
    """The lines of a job to train on, and its lines held out."""
    return split_stream(job.stream, job.held_out, share=job.settings.held_out)


def split_stream(
    stream: IndexedWords, other: IndexedWords | None, *, share: float
) -> tuple[WordLines, WordLines]:
    """Lines to train on and lines held out; refuses text that nothing can be learned from.

    Those of `other`, or else the last `share` of the stream.
    """
    lines = WordLines.of_stream(stream)
    words = len(stream.words)
    if not len(lines) or lines.starts[-1] == lines.starts[0]:
        raise ConfigError("the text has no word to learn from; give more text")
    if words < FEWEST_WORDS:
        raise ConfigError(
            f"the vocabulary has {words} words, the unknown one included, so there is nothing to "
            "choose from; lower the minimum count or give more text"
        )
    if other is not None:
        if tuple(other.words) != tuple(stream.words):
            raise ConfigError(
                "the held-out text was encoded with other words than the text; encode it with the "
                "words of the text"
            )
        held_out = WordLines.of_stream(other)
        if not len(held_out):
            raise ConfigError("the held-out text has no line; give another file")
        return lines, held_out
    if len(lines) < 2:
        raise ConfigError("the text has one line, so none can be held out; give a held-out file")
    first = _first_held_out(lines, share)
    return lines.part(0, first), lines.part(first, len(lines))


def _first_held_out(lines: WordLines, share: float) -> int:
    """The line where the held-out part begins: where a document begins, if there are several."""
    wanted = min(max(1, round(len(lines) * (1 - share))), len(lines) - 1)
    inside = lines.documents[(lines.documents > 0) & (lines.documents < len(lines))]
    if not len(inside):
        return wanted
    return int(inside[np.abs(inside - wanted).argmin()])


def line_run(
    job: LineJob,
    settings: LineSettings,
    model: nn.Module,
    workload: LineWorkload,
    held_out: WordLines,
    *,
    execution: Execution,
    watch: Watcher | None,
    parts: Collection[str] = (),
) -> Run:
    """The run of a job, by held-out perplexity; `parts` are losses that have one of their own."""
    schedule = settings.plan.schedule(workload.steps_of_epoch)

    def evaluate() -> Evaluation:
        losses = evaluate_losses(model, workload, execution)
        if losses is None:
            raise ConfigError("there are no held-out lines")
        each = {name: _perplexity_of(losses.losses[name]) for name in parts}
        return replace(losses, figures={PERPLEXITY: _perplexity_of(losses.total), **each})

    return Run(
        folder=job.out,
        model=model,
        workload=workload,
        schedule=schedule,
        optimizer=settings.optimizer,
        save=settings.save,
        evaluation=EvaluationSettings(held_out=0.0, every=settings.plan.every(schedule.steps)),
        averaging=settings.averaging,
        seed=settings.seed,
        facts=_facts(job, settings, held_out, execution),
        accept=frozenset(job.accept),
        execution=execution,
        watch=watch,
        evaluate=evaluate,
        best=settings.best,
        better=_smaller_perplexity,
    )


def _facts(
    job: LineJob, settings: LineSettings, held_out: WordLines, execution: Execution
) -> dict[str, Fact]:
    """What a checkpoint records of a job besides what the loop records: see `Run`."""
    return {
        **recorded(settings, without=LEFT_OUT),
        "kind": settings.kind,
        "data.words": json_digest(list(job.stream.words)),
        "data.train": _lines_digest(WordLines.of_stream(job.stream)),
        "data.held_out": _lines_digest(held_out),
        "precision": execution.precision.name,
    }


def _lines_digest(lines: WordLines) -> str:
    """The sha256 of the ids and the places of lines and documents."""
    digest = hashlib.sha256()
    first, end = int(lines.starts[0]), int(lines.starts[-1])
    for start in range(first, end, _BLOCK):
        digest.update(_bytes(lines.ids[start : min(start + _BLOCK, end)]))
    digest.update(_bytes(lines.starts - first))
    digest.update(_bytes(lines.documents))
    return digest.hexdigest()


def _bytes(numbers: NDArray[np.integer]) -> bytes:
    return np.ascontiguousarray(numbers, dtype="<i8").tobytes()


def _smaller_perplexity(name: str, value: float, other: float) -> bool:
    """Perplexity: less is better; no number is worse than any."""
    return value < other or (math.isnan(other) and not math.isnan(value))


def _perplexity_of(value: float) -> float:
    """Of a mean loss in nats."""
    return math.exp(value) if value < math.log(1e300) else 1e300
