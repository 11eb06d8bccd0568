"""What learns a causal language model: from a stream of words to a folder of least perplexity."""

from __future__ import annotations

from dataclasses import dataclass

from bertsmith.classic.gpt.folder import save_gpt
from bertsmith.classic.gpt.model import GptLm
from bertsmith.classic.gpt.settings import GptSettings
from bertsmith.classic.gpt.units import TokenUnits
from bertsmith.classic.gpt.workload import GptWorkload
from bertsmith.classic.neural.line_job import (
    FinishedLm,
    LineJob,
    check_ranks,
    held_out_figures,
    line_facts,
    line_inputs,
    split_lines,
)
from bertsmith.models.variants import find
from bertsmith.objectives.program import PretrainModule
from bertsmith.training.execution.execution import Execution, RunSettings
from bertsmith.training.learner import Learner, Prepared
from bertsmith.training.loop.run import Outcome
from bertsmith.training.pretrain.model import RecipeBuilder
from bertsmith.training.pretrain.recipe import PretrainRecipe, sized_spec, spec_of

GptJob = LineJob[GptSettings]


@dataclass(frozen=True, slots=True, kw_only=True)
class GptModule:
    """What is trained, and the tokens that it reads words as."""

    units: TokenUnits
    module: PretrainModule


def gpt_learner() -> Learner[GptJob, GptModule, FinishedLm[GptLm]]:
    """What learns a causal language model; its perplexity is over all tokens of the model."""
    return Learner(
        name="training of a causal language model",
        facts=line_facts,
        prepare=lambda job, execution, _: _prepare(job, execution),
        finish=_finish,
    )


def _prepare(job: GptJob, execution: Execution) -> Prepared[GptModule]:
    check_ranks(execution)
    settings = job.settings
    lines, held_out = split_lines(job)
    tokenizer = None if job.rule is None else job.rule.tokenizer
    units = TokenUnits.of(tuple(job.stream.words), tokenizer)
    workload = GptWorkload(settings, units, lines, held_out)
    device = execution.device.type
    if tokenizer is None:
        spec = sized_spec(settings.model, units.size, device=device)
    else:
        spec = spec_of(settings.model, tokenizer, device=device)
    recipe = PretrainRecipe(model=settings.model, run=RunSettings(seed=settings.seed))
    builder = RecipeBuilder(recipe, find(settings.model.variant), spec, None)
    module = workload.program.build(builder)
    execution.prepare(module)
    inputs = line_inputs(job, module, workload, execution)
    return Prepared(inputs=inputs, made=GptModule(units=units, module=module))


def _finish(job: GptJob, made: GptModule, outcome: Outcome, _: Execution) -> FinishedLm[GptLm]:
    model = GptLm(
        words=tuple(job.stream.words),
        units=made.units,
        model=made.module.model.eval().to("cpu"),
        window=job.settings.plan.window,
        rule=job.rule,
    )
    return FinishedLm(model=model, write=save_gpt, figures=held_out_figures(outcome))
