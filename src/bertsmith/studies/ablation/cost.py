"""What an ablation will cost: a few steps of the base are timed, the rest follows by arithmetic."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise

from bertsmith.config import changed
from bertsmith.corpus.shards import Corpus
from bertsmith.models.spec import Spec
from bertsmith.training.execution.execution import Execution
from bertsmith.training.loop.evaluate import EvaluationSettings
from bertsmith.training.loop.loop import train
from bertsmith.training.loop.progress import Progress
from bertsmith.training.loop.run import Run
from bertsmith.training.loop.schedule import LinearSettings
from bertsmith.training.pretrain.model import build_module
from bertsmith.training.pretrain.recipe import BatchSettings, PretrainRecipe, spec_of
from bertsmith.training.pretrain.workload import PretrainWorkload

TIMED = 6  # steps; the first is not counted
BACKWARD = 3  # a step is a forward pass and about twice as much backward
PREDICTED = 0.15  # of the tokens, where not all are predicted
TEXTS = 2  # of the small steps: what is left of their time does not depend on the tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSpeed:
    """Seconds of a step whatever its size, and of a multiplication."""

    step: float = 0.0
    multiplication: float = 1e-11


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeSize:
    """The work of a probe: tokens that are learned from, others that are only read, steps."""

    learned: float
    read: float
    steps: float


def work_of(spec: Spec, predicted: float) -> float:
    """Multiplications per token of a forward pass, `predicted` of them over the vocabulary."""
    return sum(spec.products) + predicted * spec.vocab_size * spec.embedding


def pretrain_seconds(recipe: PretrainRecipe, corpus: Corpus, speed: StepSpeed) -> float:
    """Of a whole run."""
    tokens = PretrainWorkload(recipe, corpus).step_tokens()
    work = speed.multiplication * step_work(recipe, corpus, tokens)
    return (recipe.schedule.steps or 0) * (speed.step + work)


def step_work(recipe: PretrainRecipe, corpus: Corpus, tokens: float) -> float:
    """Multiplications of a step of so many tokens, backward included."""
    spec = spec_of(recipe.model, corpus.tokenizer())
    predicted = 1.0 if spec.sees == "before" else PREDICTED
    return BACKWARD * work_of(spec, predicted) * tokens


def probe_seconds(
    recipe: PretrainRecipe, corpus: Corpus, size: ProbeSize, speed: StepSpeed
) -> float:
    """Of a probe on the model of a recipe."""
    work = work_of(spec_of(recipe.model, corpus.tokenizer()), 0.0)
    tokens = BACKWARD * size.learned + size.read
    return size.steps * speed.step + speed.multiplication * work * tokens


def measured_speed(recipe: PretrainRecipe, corpus: Corpus, execution: Execution) -> StepSpeed:
    """From a few steps of a recipe, and a few very small ones, that are kept nowhere."""
    small = changed(
        recipe, {"batch": BatchSettings(sequences=TEXTS, micro_tokens=recipe.batch.micro_tokens)}
    )
    times, works = [], []
    for one in (recipe, small):
        times.append(_step_seconds(one, corpus, execution))
        works.append(step_work(one, corpus, PretrainWorkload(one, corpus).step_tokens()))
    if works[0] <= works[1] or times[0] <= times[1]:  # a small batch, or steps that are all alike
        return StepSpeed(multiplication=times[0] / works[0])
    slope = (times[0] - times[1]) / (works[0] - works[1])
    return StepSpeed(step=max(0.0, times[1] - slope * works[1]), multiplication=slope)


def _step_seconds(recipe: PretrainRecipe, corpus: Corpus, execution: Execution) -> float:
    """Of the fastest step: on a busy machine not the time it waited, but its CPU seconds."""
    marks: list[tuple[float, float]] = []

    def watch(look: Progress) -> None:
        marks.append((time.monotonic(), time.process_time()))

    short = changed(recipe, {"schedule": LinearSettings(steps=TIMED), "log.every": 1})
    work = PretrainWorkload(short, corpus)
    module = build_module(short, corpus, work.program, device=execution.device.type)
    execution.prepare(module)
    train(
        Run(
            folder=None,
            model=module,
            workload=work,
            schedule=LinearSettings(steps=TIMED),
            optimizer=short.optimizer,
            evaluation=EvaluationSettings(held_out=0.0, every=None),
            seed=short.run.seed,
            execution=execution,
            evaluate=None,
            watch=watch,
        )
    )
    spans = [later[0] - sooner[0] for sooner, later in pairwise(marks)]
    if execution.device.type == "cpu":
        spans += [later[1] - sooner[1] for sooner, later in pairwise(marks)]
    return max(min(spans, default=1.0), 1e-6)
