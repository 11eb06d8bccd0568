"""Some rows of many, with every label in its share: for trials that need not read all of them."""

from __future__ import annotations

from collections.abc import Sequence

from bertsmith.data.examples.example import Example
from bertsmith.data.examples.stratify import grouped_strata
from bertsmith.errors import ConfigError


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
