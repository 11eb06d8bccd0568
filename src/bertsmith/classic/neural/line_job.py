"""What the trainings of language models on lines share: job, held-out lines, loop, result."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import nn

from bertsmith.classic.language_model import LanguageModel
from bertsmith.classic.neural.reading import IndexedWords, WordLines
from bertsmith.classic.neural.settings import LineSettings
from bertsmith.classic.stream.splitting import SplitRule
from bertsmith.errors import ConfigError
from bertsmith.files.atomic_folder import result_folder
from bertsmith.files.digest import json_digest
from bertsmith.training.checkpoints.resume import Fact, recorded
from bertsmith.training.execution.execution import Execution
from bertsmith.training.learner import LoopInputs
from bertsmith.training.loop.evaluate import Evaluation, EvaluationSettings, evaluate_losses
from bertsmith.training.loop.run import Outcome
from bertsmith.training.loop.workload import Workload

# The loop records these itself, under the same names; `save` changes nothing that is learned.
LEFT_OUT = ("optimizer", "averaging", "save", "seed")
FEWEST_WORDS = 3  # of a vocabulary, the unknown word included
PERPLEXITY = "perplexity"
_BLOCK = 1 << 22

Chosen = TypeVar("Chosen", bound=LineSettings)
Lm = TypeVar("Lm", bound=LanguageModel)


# Without slots: an alias with its settings filled in, such as `NeuralJob`, can then be called.
@dataclass(frozen=True, kw_only=True)
class LineJob(Generic[Chosen]):
    """What is learned from which words, and where the result goes: nowhere if `out` is None.

    Without `held_out` the last share of the stream, as the settings say, is held out. `accept`
    names settings whose change since the last checkpoint is wanted.
    """

    settings: Chosen
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
class FinishedLm(Generic[Lm]):
    """A trained language model on the CPU, in evaluation mode, and what writes its folder.

    `figures` are of the held-out lines, line ends included.
    """

    model: Lm
    write: Callable[[Lm, Path], None]
    figures: dict[str, float] | None
    notes: tuple[str, ...] = ()

    @property
    def perplexity(self) -> float | None:
        """That of the held-out lines, which the weights were chosen by."""
        return None if self.figures is None else self.figures.get(PERPLEXITY)

    def save(self, out: Path) -> None:
        """Put the model folder into `out`."""
        with result_folder(out) as staging:
            self.write(self.model, staging)


def check_ranks(execution: Execution) -> None:
    """Refuse several processes."""
    if execution.ranks.world > 1:
        raise ConfigError("language models of lines train in one process; set devices to 1")


def split_lines(job: LineJob[Chosen]) -> tuple[WordLines, WordLines]:
    """Lines to train on and lines held out; refuses text that nothing can be learned from.

    Those of a held-out stream, or else the last share of the stream.
    """
    stream, other = job.stream, job.held_out
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
    first = _first_held_out(lines, job.settings.held_out)
    return lines.part(0, first), lines.part(first, len(lines))


def _first_held_out(lines: WordLines, share: float) -> int:
    """The line where the held-out part begins: where a document begins, if there are several."""
    wanted = min(max(1, round(len(lines) * (1 - share))), len(lines) - 1)
    inside = lines.documents[(lines.documents > 0) & (lines.documents < len(lines))]
    if not len(inside):
        return wanted
    return int(inside[np.abs(inside - wanted).argmin()])


def class_counts(job: LineJob[Chosen], lines: WordLines) -> NDArray[np.int64]:
    """How often each class occurs, line ends first: (V + 1,)."""
    return np.concatenate([[len(lines)], np.asarray(job.stream.counts)]).astype(np.int64)


def line_inputs(
    job: LineJob[Chosen],
    model: nn.Module,
    workload: LineWorkload,
    execution: Execution,
    *,
    parts: Collection[str] = (),
) -> LoopInputs:
    """What the loop trains, by held-out perplexity; `parts` are losses with one of their own."""
    settings = job.settings
    schedule = settings.plan.schedule(workload.steps_of_epoch)

    def evaluate() -> Evaluation:
        losses = evaluate_losses(model, workload, execution)
        if losses is None:
            raise ConfigError("there are no held-out lines")
        each = {name: _perplexity_of(losses.losses[name]) for name in parts}
        return replace(losses, figures={PERPLEXITY: _perplexity_of(losses.total), **each})

    return LoopInputs(
        model=model,
        workload=workload,
        schedule=schedule,
        optimizer=settings.optimizer,
        save=settings.save,
        averaging=settings.averaging,
        evaluation=EvaluationSettings(held_out=0.0, every=settings.plan.every(schedule.steps)),
        seed=settings.seed,
        evaluate=evaluate,
        best=settings.best,
        better=_smaller_perplexity,
    )


def line_facts(job: LineJob[Chosen], execution: Execution) -> dict[str, Fact]:
    """What a checkpoint records of a job besides what the loop records: see `Run`."""
    _, held_out = split_lines(job)
    return {
        **recorded(job.settings, without=LEFT_OUT),
        "kind": job.settings.kind,
        "data.words": json_digest(list(job.stream.words)),
        "data.train": _lines_digest(WordLines.of_stream(job.stream)),
        "data.held_out": _lines_digest(held_out),
        "precision": execution.precision.name,
    }


def held_out_figures(outcome: Outcome) -> dict[str, float] | None:
    """Figures of the chosen weights."""
    return None if outcome.evaluation is None else dict(outcome.evaluation.figures)


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
