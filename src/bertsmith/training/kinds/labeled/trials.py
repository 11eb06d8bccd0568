"""Fine-tuning as one of several small runs: a row of a study."""

from __future__ import annotations

import shutil

from bertsmith.files.digest import json_digest
from bertsmith.training.execution.execution import Execution
from bertsmith.training.execution.rank_sync import on_first
from bertsmith.training.kinds.labeled.learner import FinetuneJob, finetune, labeled_facts
from bertsmith.training.loop.progress import Watcher
from bertsmith.training.loop.run import Outcome
from bertsmith.training.repeat.trials import Trial, TrialResult, begin_run, recipe_facts


def finetune_trial(
    name: str, job: FinetuneJob, execution: Execution, *, mark: str = "", cost: float = 1.0
) -> Trial:
    """A run of fine-tuning in `job.folder`, which is removed when it is finished.

    `mark` identifies the initial weights, since others may have the same name.
    """
    # The job as it is given: its model may not be there yet, as those of an ablation.
    facts = labeled_facts(job, execution)
    key = json_digest({**facts, **recipe_facts(job.recipe, job.recipe.run.seed), "mark": mark})

    def run(watch: Watcher | None) -> TrialResult | Outcome:
        on_first(execution.ranks, lambda: begin_run(job.folder, key))
        result = finetuned(name, job, execution, watch)
        if not isinstance(result, Outcome):
            on_first(execution.ranks, lambda: shutil.rmtree(job.folder))
        return result

    return Trial(name=name, key=key, run=run, cost=cost)


def finetuned(
    name: str, job: FinetuneJob, execution: Execution, watch: Watcher | None
) -> TrialResult | Outcome:
    """A run of fine-tuning as a row of a table, or how it was stopped."""
    done = finetune(job, execution=execution, watch=watch)
    result = done.finished
    if result is None:
        return done.outcome
    return TrialResult(
        name=name,
        figures=result.figures,
        seconds=done.outcome.seconds,
        answers=result.predictions,
    )
