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
from bertsmith.training.pretrain.recipe import PretrainRecipe, spec_of
from bertsmith.training.pretrain.workload import PretrainWorkload

TIMED = 4  # steps; the first is not counted
BACKWARD = 3  # a step is a forward pass and about twice as much backward
PREDICTED = 0.15  # of the tokens, where not all are predicted


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeSize:
    """The rows of a probe: how often they are read, and by which kind of pass."""

    tokens: float  # over all epochs
    trained: bool


def work_of(spec: Spec, predicted: float) -> float:
    """Multiplications per token of a forward pass, `predicted` of them over the vocabulary."""
    block = 4 * spec.hidden**2 + 2 * spec.hidden * spec.feed_forward
    return spec.layers * block + predicted * spec.vocab_size * spec.embedding


def pretrain_work(recipe: PretrainRecipe, corpus: Corpus) -> float:
    """Multiplications of a whole run."""
    spec = spec_of(recipe.model, corpus.tokenizer())
    predicted = 1.0 if spec.sees == "before" else PREDICTED
    return BACKWARD * work_of(spec, predicted) * step_tokens(recipe) * (recipe.schedule.steps or 0)


def probe_work(recipe: PretrainRecipe, corpus: Corpus, size: ProbeSize) -> float:
    """Multiplications of a probe on the model of a recipe."""
    spec = spec_of(recipe.model, corpus.tokenizer())
    return (BACKWARD if size.trained else 1) * work_of(spec, 0.0) * size.tokens


def step_tokens(recipe: PretrainRecipe) -> int:
    """About how many tokens a step reads."""
    length = recipe.input.max_length
    return recipe.batch.texts(length) * length


def measured_speed(recipe: PretrainRecipe, corpus: Corpus, execution: Execution) -> float:
    """Multiplications per second, from a few steps of a recipe that are kept nowhere."""
    marks: list[float] = []

    def watch(look: Progress) -> None:
        marks.append(time.monotonic())

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
    done = pretrain_work(short, corpus) / TIMED
    spans = [later - sooner for sooner, later in pairwise(marks)]
    return done / max(min(spans, default=1.0), 1e-6)
