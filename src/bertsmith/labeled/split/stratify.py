"""Stratified splits, folds and subsets: labels in their share, groups whole, fixed by a seed."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

from bertsmith.errors import ConfigError, InputFileError
from bertsmith.labeled.example import (
    Answers,
    ChoiceIndex,
    Example,
    ScoreTarget,
    Tagged,
    label_names,
)

BINS = 10  # of scores, by quantiles
FEWEST = 2  # folds
GROUPS = ("title", "document")  # what readers call the text that rows were taken from
SPLITS = ("train", "dev", "test")
Shares = tuple[float, float, float]


def check_shares(shares: Sequence[float]) -> Shares:
    """Three shares that add up to one."""
    train, dev, test = shares if len(shares) == 3 else (0.0, 0.0, 0.0)
    if train <= 0 or min(dev, test) < 0 or abs(train + dev + test - 1) > 1e-9:
        raise ConfigError(
            f"shares {tuple(shares)}: give train, dev and test, three numbers from 0 that add up "
            "to 1, such as (0.8, 0.1, 0.1)"
        )
    return train, dev, test


def assign(
    examples: Sequence[Example], *, seed: int, shares: Shares, group: str | None
) -> list[int]:
    """0, 1 or 2 (train, dev, test) for each example.

    Rows of one group (`extra[group]`), or with the same texts, stay together. Strata are dealt out
    from the rarest on, each in the order of a hash of its groups, so that the shares hold all
    along the way; the first group of each is for training, so that no label is met for the first
    time in a test, and the common ones make up for it.
    """
    strata = grouped_strata(examples, seed=seed, group=group)
    whose = [0] * len(examples)
    given = [0.0, 0.0, 0.0]
    for groups in strata:
        for place, members in enumerate(groups):
            total = sum(given) + len(members)
            lacking = [share * total - have for share, have in zip(shares, given, strict=True)]
            chosen = 0 if place == 0 else max(range(3), key=lambda i: lacking[i])
            given[chosen] += len(members)
            for number in members:
                whose[number] = chosen
    for number, share in enumerate(shares):
        if share > 0 and given[number] == 0:
            count = sum(map(len, strata))
            raise InputFileError(
                f"{examples[0].source if examples else 'the file'}: {len(examples)} rows in "
                f"{count} groups are too few for a {SPLITS[number]} part of {share:g}; add "
                "rows, give a larger share, or give files of their own"
            )
    return whose


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


def grouped_strata(
    examples: Sequence[Example], *, seed: int, group: str | None
) -> list[list[list[int]]]:
    """Rows that stay together, by what must be spread evenly: the rarest stratum first.

    The groups of a stratum stand in the order of a hash.
    """
    groups: dict[str, list[int]] = {}
    for number, example in enumerate(examples):
        groups.setdefault(_group(example, group), []).append(number)
    strata: dict[str, list[tuple[str, list[int]]]] = {}
    kinds = strata_of(examples)
    for name, members in groups.items():
        common = Counter(kinds[number] for number in members).most_common()
        kind = min(kind for kind, count in common if count == common[0][1])
        strata.setdefault(kind, []).append((_hash(seed, name), members))
    order = sorted(strata, key=lambda kind: (len(strata[kind]), kind))
    return [[members for _, members in sorted(strata[kind])] for kind in order]


def usual_group(examples: Sequence[Example]) -> str | None:
    """The extra column that names the text a row was taken from, if readers gave one."""
    first = examples[0].extra if examples else {}
    return next((name for name in GROUPS if name in first), None)


def _group(example: Example, group: str | None) -> str:
    if group is not None and group in example.extra:
        return "group\0" + example.extra[group]
    return "\0".join(example.texts)


def _hash(seed: int, name: str) -> str:
    return hashlib.sha256(f"{seed}\0{name}".encode("utf-8", "surrogatepass")).hexdigest()


def strata_of(examples: Sequence[Example]) -> list[str]:
    """What must be spread evenly: labels, the rarest label of several, quantiles of scores."""
    names = [_names(example) for example in examples]
    counts = Counter(name for labels in names for name in labels)
    edges = _edges([e.target.value for e in examples if isinstance(e.target, ScoreTarget)])
    return [
        f"{sum(edge < example.target.value for edge in edges):02d}"
        if isinstance(example.target, ScoreTarget)
        else min(labels, key=lambda name: (counts[name], name), default="")
        for example, labels in zip(examples, names, strict=True)
    ]


def _names(example: Example) -> tuple[str, ...]:
    target = example.target
    if isinstance(target, ChoiceIndex):
        return (str(target.index),)
    if isinstance(target, Answers):
        return ("answer" if target.placed else "none",)
    if isinstance(target, Tagged):
        return tuple(sorted({tag[2:] for tag in target.tags if tag[:2] == "B-"}))
    return label_names(target)


def _edges(values: list[float]) -> list[float]:
    """The scores between quantiles."""
    ordered = sorted(values)
    return sorted({ordered[len(ordered) * i // BINS] for i in range(1, BINS)}) if ordered else []
