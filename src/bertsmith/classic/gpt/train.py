"""Training a causal language model from a stream of words to a folder; the same call resumes."""

from __future__ import annotations

from dataclasses import dataclass

from bertsmith.classic.gpt.folder import save_gpt
from bertsmith.classic.gpt.model import GptLm
from bertsmith.classic.gpt.settings import GptSettings
from bertsmith.classic.gpt.units import TokenUnits
from bertsmith.classic.gpt.workload import GptWorkload
from bertsmith.classic.neural.train import (
    PERPLEXITY,
    LineJob,
    check_ranks,
    line_run,
    put_result,
    split_stream,
)
from bertsmith.models.variants import find
from bertsmith.training.execution.execution import Execution, RunSettings
from bertsmith.training.loop.loop import train
from bertsmith.training.loop.progress import Watcher
from bertsmith.training.loop.run import Outcome
from bertsmith.training.pretrain.model import RecipeBuilder
from bertsmith.training.pretrain.recipe import PretrainRecipe, sized_spec, spec_of


@dataclass(frozen=True, slots=True, kw_only=True)
class GptJob(LineJob):
    """The training of a causal language model."""

    settings: GptSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class GptResult:
    """The result: `model` is None when the run was stopped before its end.

    `perplexity` is that of the held-out lines, over all tokens of the model.
    """

    outcome: Outcome
    model: GptLm | None = None
    perplexity: float | None = None


def train_gpt(
    job: GptJob, *, execution: Execution | None = None, watch: Watcher | None = None
) -> GptResult:
    """Train, or resume training, and write the folder with the weights of least perplexity."""
    execution = execution or Execution()
    check_ranks(execution)
    settings, words = job.settings, tuple(job.stream.words)
    lines, held_out = split_stream(job.stream, job.held_out, share=settings.held_out)
    tokenizer = None if job.rule is None else job.rule.tokenizer
    units = TokenUnits.of(words, tokenizer)
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
    run = line_run(
        job,
        settings,
        module,
        workload,
        held_out,
        execution=execution,
        watch=watch,
    )
    outcome = train(run)
    if outcome.status != "finished":
        return GptResult(outcome=outcome)
    model = GptLm(
        words=words,
        units=units,
        model=module.model.eval().to("cpu"),
        window=settings.plan.window,
        rule=job.rule,
    )
    put_result(job.out, lambda staging: save_gpt(model, staging), execution)
    figures = {} if outcome.evaluation is None else outcome.evaluation.figures
    return GptResult(outcome=outcome, model=model, perplexity=figures.get(PERPLEXITY))
