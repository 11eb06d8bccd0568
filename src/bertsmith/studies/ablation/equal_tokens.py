"""Equal rows: each trains on as many tokens as the base; one that cannot differ is found out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bertsmith.config import changed
from bertsmith.corpus.shards import Corpus
from bertsmith.studies.ablation.variations import Variation
from bertsmith.training.pretrain.workload import PretrainWorkload
from bertsmith.wording import counted


def equal_tokens(rows: Sequence[Variation], corpus: Corpus) -> tuple[Variation, ...]:
    """The rows with as many steps as they need to read the tokens of the first one, the base.

    A step has equally many texts in all rows, but texts of another kind have other lengths: those
    without next sentence prediction are longer. Lengths are the mean of an epoch; which of its
    texts a short run reads is left to chance, a percent or two in some hundred steps.
    """
    base = rows[0].recipe
    steps = base.schedule.steps or 0
    tokens = steps * PretrainWorkload(base, corpus).step_tokens()
    found = []
    for row in rows:
        work = PretrainWorkload(row.recipe, corpus)
        count = max(1, round(tokens / work.step_tokens()))
        changes: dict[str, int | None] = {}
        if count != row.recipe.schedule.steps:
            changes["schedule.steps"] = count
        note = ""
        draws = [row.recipe.program.draw_of(epoch) for epoch in range(work.epochs(count))]
        if row is not rows[0] and _static(row) and len(set(draws)) == len(draws):
            changes["program.mask.copies"] = None  # the same masks, so the same run
            note = (
                f"the run begins {counted(len(draws), 'epoch')} of the corpus, so static masking "
                f"with {counted(_static(row) or 0, 'mask')} per text repeats none: no difference "
                "is possible"
            )
        recipe = changed(row.recipe, changes) if changes else row.recipe
        found.append(replace(row, recipe=recipe, note=note))
    return tuple(found)


def _static(row: Variation) -> int | None:
    """The copies of static masking."""
    mask = getattr(row.recipe.program, "mask", None)
    return None if mask is None else mask.copies
