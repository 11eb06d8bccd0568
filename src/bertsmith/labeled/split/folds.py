"""Rows dealt out to folds: every label alike in each, groups stay whole, the same for a seed."""

from __future__ import annotations

from collections.abc import Sequence

from bertsmith.errors import ConfigError
from bertsmith.labeled.example import Example
from bertsmith.labeled.split.stratify import grouped_strata, usual_group

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


def some_rows(examples: Sequence[Example], most: int | None, *, seed: int = 0) -> list[Example]:
    """At most `most` rows in their order; the same ones for a seed, and more of them for more.

    Every label keeps its share as well as whole numbers allow; no label is lost before each has
    one row. None: all rows.
    """
    if most is None or most >= len(examples):
        return list(examples)
    if most < 1:
        raise ConfigError(f"{most} rows are none to learn from; give 1 or more")
    strata = [
        [number for members in stratum for number in members]
        for stratum in grouped_strata(examples, seed=seed, group=None)
    ]
    # A row's place in its stratum, as a share of it: taking the lowest ones takes all strata
    # alike. The first row of each comes before all others, the rarest label first.
    order = sorted(
        (place / len(stratum) if place else -1.0, kind, number)
        for kind, stratum in enumerate(strata)
        for place, number in enumerate(stratum)
    )
    return [examples[number] for number in sorted(number for _, _, number in order[:most])]
