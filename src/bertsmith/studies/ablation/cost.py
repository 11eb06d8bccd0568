"""What an ablation will cost: a few steps of the base are timed, the rest follows by arithmetic."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

from bertsmith.config import changed
from bertsmith.corpus.shards import Corpus
from bertsmith.files.strict_json import json_values
from bertsmith.labeled.example import Example
from bertsmith.models.spec import Spec
from bertsmith.studies.ablation.runs import (
    Ablation,
    ProbeRows,
    Probing,
    ablation_trials,
    check_ablation,
    comparisons,
    model_name,
    probe_name,
)
from bertsmith.studies.ablation.table import standard_errors_needed
from bertsmith.studies.ablation.variations import Variation
from bertsmith.studies.study import StudyPlan, StudyTable
from bertsmith.training.execution.execution import Execution
from bertsmith.training.learner import LoopInputs, MemoryJob, loop_run
from bertsmith.training.loop.averaging import AveragingSettings
from bertsmith.training.loop.evaluate import EvaluationSettings
from bertsmith.training.loop.loop import train
from bertsmith.training.loop.progress import Progress
from bertsmith.training.loop.schedule import LinearSettings
from bertsmith.training.pretrain.model import build_module
from bertsmith.training.pretrain.recipe import BatchSettings, PretrainRecipe, spec_of
from bertsmith.training.pretrain.workload import PretrainWorkload
from bertsmith.training.repeat.trials import Trial, stored_result
from bertsmith.wording import counted, duration

TIMED = 6  # steps; the first is not counted
BACKWARD = 3  # a step is a forward pass and about twice as much backward
PREDICTED = 0.15  # of the tokens, where not all are predicted
WORDS_PER_TOKEN = 0.75  # of running text
HEAD_STEP = 0.1  # of a step of the whole model, whatever its size: what a head alone takes
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
    inputs = LoopInputs(
        model=module,
        workload=work,
        schedule=LinearSettings(steps=TIMED),
        optimizer=short.optimizer,
        save=short.save,
        averaging=AveragingSettings(),
        evaluation=EvaluationSettings(held_out=0.0, every=None),
        seed=short.run.seed,
    )
    train(loop_run(MemoryJob(), inputs, {}, execution, watch))
    spans = [later[0] - sooner[0] for sooner, later in pairwise(marks)]
    if execution.device.type == "cpu":
        spans += [later[1] - sooner[1] for sooner, later in pairwise(marks)]
    return max(min(spans, default=1.0), 1e-6)


def priced(
    study: Ablation, trials: Sequence[Trial], corpus: Corpus, speed: StepSpeed
) -> list[Trial]:
    """The trials with their time in seconds, at this speed, as their cost."""
    costs: dict[str, float] = {}
    for row in study.rows:
        model = pretrain_seconds(row.recipe, corpus, speed)
        probes = [
            (case, probe_seconds(row.recipe, corpus, _probe_size(*case, row), speed))
            for case in study.cases()
        ]
        for seed in study.seeds:
            costs[model_name(row, seed)] = model
            costs |= {probe_name(row, seed, case): seconds for case, seconds in probes}
    return [replace(trial, cost=costs[trial.name]) for trial in trials]


def _probe_size(probe: ProbeRows, how: Probing, row: Variation) -> ProbeSize:
    """Of a fine-tuning; a frozen encoder reads each text once."""
    plan = probe.recipe(how, row.probe).plan
    train, dev = _tokens(probe.train), _tokens(probe.dev)
    steps = len(probe.train) * plan.epochs / plan.batch
    if how == "frozen":
        return ProbeSize(learned=0.0, read=train + dev, steps=steps * HEAD_STEP)
    return ProbeSize(learned=train * plan.epochs, read=dev * plan.epochs, steps=steps)


def _tokens(rows: Sequence[Example]) -> float:
    return sum(len(text.split()) / WORDS_PER_TOKEN for row in rows for text in row.texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class AblationCost:
    """What is to be done: models and probes in all, runs that are left, about how many seconds.

    `needed`: a star needs a mean difference of so many of its standard errors.
    """

    rows: int
    seeds: int
    models: int
    probes: int
    left: int
    seconds: float
    needed: float
    notes: tuple[str, ...]

    def lines(self) -> list[str]:
        """In words."""
        whole = (
            f"{self.rows} rows x {self.seeds} seeds: {counted(self.models, 'model')} and "
            f"{counted(self.probes, 'probe')}"
        )
        if not self.left:
            return [f"{whole}, all finished", *self.notes]
        part = "" if self.left == self.models + self.probes else f"{self.left} of them are left, "
        lines = [
            f"{whole}, {part}about {duration(self.seconds)} on this machine if nothing else runs "
            "(from a few timed steps of the base)"
        ]
        if math.isfinite(self.needed):
            lines.append(
                f"with {self.seeds} seeds and so many comparisons, a star needs a difference of "
                f"{self.needed:.0f} times its standard error; more seeds need less"
            )
        return [*lines, *self.notes]

    def to_json(self, rows: Sequence[Variation]) -> dict[str, Any]:
        """Plain values, with what each row changes."""
        listed = [
            {"name": row.name, "settings": list(row.given), "steps": row.recipe.schedule.steps}
            for row in rows
        ]
        return dict(json_values({**asdict(self), "rows": listed}))


def plan_ablation(study: Ablation, execution: Execution) -> StudyPlan:
    """All runs, and what they cost: a few steps of the base are timed, the rest is arithmetic."""
    corpus = check_ablation(study)
    trials = ablation_trials(study, execution)
    left = [one.name for one in trials if stored_result(one, study.folder) is None]
    speed = measured_speed(study.base, corpus, execution) if left else StepSpeed()
    trials = priced(study, trials, corpus, speed)
    models = len({id(row) for row in study.owners().values()}) * len(study.seeds)
    cost = AblationCost(
        rows=len(study.rows),
        seeds=len(study.seeds),
        models=models,
        probes=len(trials) - models,
        left=len(left),
        seconds=sum(trial.cost for trial in trials if trial.name in left),
        needed=standard_errors_needed(len(study.seeds), comparisons(study)),
        notes=tuple(f"{row.name}: {row.note}" for row in study.rows if row.note),
    )
    steps = [(row, row.recipe.schedule.steps) for row in study.rows]
    return StudyPlan(
        trials=trials,
        price=cost.lines(),
        table=StudyTable(
            heads=("row", "steps", "settings"),
            rows=[(row.name, f"{count:,}", "; ".join(row.given)) for row, count in steps],
        ),
        record=cost.to_json(study.rows),
    )
