"""Held-out masked loss of any model under the masks of one recipe."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import torch

from bertsmith.corpus.shards import Corpus
from bertsmith.folders.read import load_model
from bertsmith.models.build import Model
from bertsmith.objectives.batch import PretrainBatch
from bertsmith.training.execution.execution import Execution
from bertsmith.training.pretrain.recipe import PretrainRecipe
from bertsmith.training.pretrain.workload import PretrainWorkload

MASKED_LOSS = "masked loss"


def why_none(base: PretrainRecipe, recipe: PretrainRecipe) -> str | None:
    """Why a recipe has no masked loss under the base's masks; None if it has one."""
    if base.program.token_objective is None:
        return "the base masks no tokens"
    if recipe.program.token_objective is None:
        left = recipe.model.sees == "before"
        who = "a left-to-right model" if left else "it"
        return f"{who} does not learn to predict masked tokens"
    return None


@torch.no_grad()
def masked_loss(folder: Path, base: PretrainRecipe, corpus: Corpus, execution: Execution) -> float:
    """The mean loss of the tokens that the base masks in its held-out text, in nats."""
    objective = base.program.token_objective
    if objective is None:
        raise LookupError("the base masks no tokens")
    model: Model = load_model(folder, device=str(execution.device)).model.eval()
    total, count = 0.0, 0
    for batch in PretrainWorkload(base, corpus).held_out():
        here = cast("PretrainBatch", batch).to(execution.device)
        hidden = model(here.inputs, rows=here.rows).hidden
        loss, _ = objective.loss(model, None, hidden, here.targets[objective.name])
        total += float(loss.sum)
        count += loss.count
    return total / count if count else float("nan")
