"""Rows dealt out to folds: every label alike in each, groups kept whole, the same for a seed."""

from __future__ import annotations

from collections.abc import Sequence

from bertsmith.data.examples.example import Example
from bertsmith.data.examples.stratify import grouped_strata, usual_group
from bertsmith.errors import ConfigError

FEWEST = 2


def fold_numbers(
    examples: Sequence[Example], folds: int, *, seed: int = 0, group: str | None = None
) -> list[int]:
    """The fold, from 0, in which each example is held out.

    Rows of one group (`extra[group]`, by default the document they were taken from) or with the
    same texts share a fold. Each group goes where its stratum is rarest, then where rows are few.
    """
    strata = grouped_strata(examples, seed=seed, group=group or usual_group(examples))
    groups = sum(map(len, strata))
    if not FEWEST <= folds <= groups:
        raise ConfigError(
            f"{folds} folds of {len(examples)} rows in {groups} groups; give a number of folds "
            f"from {FEWEST} to {groups}"
        )
    whose = [0] * len(examples)
    sizes = [0] * folds
    for stratum in strata:
        here = [0] * folds
        for members in stratum:
            chosen = min(range(folds), key=lambda fold: (here[fold], sizes[fold], fold))
            here[chosen] += len(members)
            sizes[chosen] += len(members)
            for number in members:
                whose[number] = chosen
    return whose
