"""What a knowledge graph or a channel of tags is worth: the same training without it, compared."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from bertsmith.errors import ConfigError
from bertsmith.evaluation.comparison import compare
from bertsmith.labeled.example import Example
from bertsmith.runtime.load_predictor import load_predictor
from bertsmith.runtime.predictor import ModelPredictor
from bertsmith.training.execution.execution import Execution
from bertsmith.training.kind import Audience, TrainingRequest
from bertsmith.training.kinds.labeled.enrichment import ablation_of
from bertsmith.training.kinds.labeled.learner import FinetuneJob, finetune
from bertsmith.training.kinds.labeled.recipe import FinetuneRecipe
from bertsmith.training.kinds.labeled.rows import LabeledRows
from bertsmith.training.loop.run import Outcome

WITH, WITHOUT = "with", "without"


def check_ablation(request: TrainingRequest, recipe: FinetuneRecipe) -> None:
    """Refuse several runs where one is compared with the run without its enrichment."""
    for name, part in (("knowledge", recipe.knowledge), ("channel", recipe.channel)):
        if part is not None and part.ablation and (request.seeds > 1 or request.folds is not None):
            raise ConfigError(
                f"--{name} trains twice, with and without it, and compares the two; for several "
                f"seeds or folds set {name}.ablation=false"
            )


def run_ablation(job: FinetuneJob, execution: Execution, audience: Audience) -> Outcome | None:
    """Train without the enrichment, if the job has one; how that ended."""
    plain = ablation_of(job)
    if plain is None:
        return None
    audience.note(f"the same training without it, in {plain.folder.name}, for comparison")
    with audience.training() as watch:
        return finetune(plain, execution=execution, watch=watch).outcome


def compare_ablation(job: FinetuneJob, device: str) -> dict[str, Any]:
    """The section `enrichment` of the record: coverage, and the comparison; {} without one."""
    model = load_predictor(job.folder, device=device)
    enrichment = model.reading.enrichment
    if enrichment is None:
        return {}
    section: dict[str, Any] = {
        "key": enrichment.key,
        "coverage": {
            name: model.reading.counted(model.task, rows)[1]
            for name, rows in job.rows.sides.items()
            if rows
        },
    }
    plain = ablation_of(job)
    if plain is not None:
        name, rows = _compared(job.rows)
        first, second = (
            [one for _, one in predictor.stream(rows)]
            for predictor in (_loaded(plain, device), model)
        )
        comparison = compare(model.task, rows, first, second)
        section["ablation"] = {
            "split": name,
            "folder": plain.folder.name,
            **comparison.to_json(),
            "difference": asdict(comparison.difference),
            "words": comparison.words(WITHOUT, WITH),
        }
    return {"enrichment": section}


def _loaded(job: FinetuneJob, device: str) -> ModelPredictor:
    return load_predictor(job.folder, device=device)


def _compared(labeled: LabeledRows) -> tuple[str, list[Example]]:
    """The labeled test rows, or the development rows if there are none."""
    test = [row for row in labeled.test if row.target is not None]
    return ("test", test) if test else ("dev", list(labeled.dev))
