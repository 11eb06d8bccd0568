"""An ablation as a study: from what was asked for to rows, seeds and probes, and their files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from markupsafe import Markup

from bertsmith.config import Overrides
from bertsmith.errors import ConfigError, InputFileError, unknown
from bertsmith.files.atomic_folder import make_folder
from bertsmith.labeled.spec import DataSpec
from bertsmith.labeled.split.splits import Splits, load_splits
from bertsmith.labeled.split.stratify import some_rows
from bertsmith.studies.ablation.cost import plan_ablation
from bertsmith.studies.ablation.page import ablation_sections
from bertsmith.studies.ablation.runs import (
    Ablation,
    ProbeRows,
    Probing,
    ablation_table,
    check_ablation,
)
from bertsmith.studies.ablation.table import AblationTable
from bertsmith.studies.ablation.variations import GridRow, equal_tokens, find_grid, variations
from bertsmith.studies.study import Study, StudyPlan
from bertsmith.training.execution.execution import Execution
from bertsmith.training.kinds.labeled.recipe import load_finetune_recipe
from bertsmith.training.repeat.trials import Trials

ROWS = (2_000, 1_000)
WAYS: Mapping[str, tuple[Probing, ...]] = {
    "frozen": ("frozen",),
    "tuned": ("tuned",),
    "both": ("frozen", "tuned"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AblationRequest:
    """What to vary and how to measure it; `rows`: at most so many of train and of dev.

    `recipe` is a recipe, or a grid of variations; `vary` adds rows, each one or more settings with
    ";" between them. `settings` are those of all rows, `probe_settings` of all fine-tunings.
    """

    recipe: str
    corpus: Path
    out: Path
    vary: Sequence[str] = ()
    only: Sequence[str] = ()
    settings: Overrides = ()
    seeds: int = 3
    probes: Sequence[Path] = ()
    probing: Literal["frozen", "tuned", "both"] = "tuned"
    probe_settings: Sequence[str] = ()
    rows: tuple[int, int] = ROWS


@dataclass(frozen=True, kw_only=True)
class AblationStudy(Study[AblationTable]):
    """The pre-trainings and probes of an ablation, which share one base."""

    ablation: Ablation
    folder: Path
    title: str
    name: str = "ablation"

    def plan(self, execution: Execution) -> StudyPlan:
        """All runs; a few steps of the base are timed to know what they cost."""
        return plan_ablation(self.ablation, execution)

    def result(self, done: Trials) -> AblationTable:
        """Paired differences to the base."""
        return ablation_table(self.ablation, done.rows)

    def sections(self, result: AblationTable) -> list[Markup]:
        """The table with a forest plot for every metric."""
        return ablation_sections(result)


def read_ablation(
    request: AblationRequest, *, notice: Callable[[str], None] = lambda line: None
) -> AblationStudy:
    """Rows, seeds and probes of a request, checked; nothing is trained."""
    if request.seeds < 1:
        raise ConfigError(f"{request.seeds} seeds: give one or more")
    grid = find_grid(request.recipe)
    rows = [*_chosen(grid.vary if grid else (), request.only), *map(_row, request.vary)]
    recipe = grid.recipe if grid else request.recipe
    settings = [*(grid.settings if grid else ()), *request.settings]
    found = variations(recipe, settings, rows)
    if found[0].recipe.run.devices > 1:
        raise ConfigError("an ablation runs on one device; leave out run.devices")
    first = found[0].recipe.run.seed
    study = Ablation(
        rows=found,
        seeds=tuple(range(first, first + request.seeds)),
        corpus=request.corpus,
        folder=request.out,
        probes=tuple(_probes(request, notice)),
        probing=WAYS[request.probing],
    )
    study = replace(study, rows=equal_tokens(study.rows, check_ablation(study)))
    return AblationStudy(ablation=study, folder=request.out, title=f"ablation: {request.recipe}")


def _chosen(rows: Sequence[GridRow], only: Sequence[str]) -> list[GridRow]:
    names = [row.name for row in rows]
    for name in only:
        if name not in names:
            raise unknown("row of the grid", name, names)
    return [row for row in rows if not only or row.name in only]


def _row(text: str) -> GridRow:
    """ "reading=left_to_right; bilstm=128" -> a row of that name."""
    parts = tuple(part.strip() for part in text.split(";") if part.strip())
    if not parts:
        raise ConfigError(f"--vary {text!r} is no setting; write section.key=value")
    return GridRow(name="; ".join(parts), settings=parts)


def _probes(request: AblationRequest, notice: Callable[[str], None]) -> list[ProbeRows]:
    names: list[str] = []
    probes = []
    for path in request.probes:
        name = path.resolve().name.partition(".")[0]
        if name in names:
            raise ConfigError(f"two probes are called {name!r}; rename the file or folder {path}")
        names.append(name)
        make_folder(request.out)
        splits = _splits(path, request.out / f"{name}.split.json")
        spec = splits.specs["train"]
        if spec.task is None or any(row.target is None for row in splits.train):
            raise InputFileError(
                f"{path}: a probe needs labeled rows, and no label was found; give a file with "
                "texts and labels"
            )
        load_finetune_recipe(None, request.probe_settings, task=spec.task)
        probe = ProbeRows(
            name=name,
            task=spec.task,
            train=some_rows(splits.train, request.rows[0]),
            dev=some_rows(splits.dev, request.rows[1]),
            settings=tuple(request.probe_settings),
        )
        notice(
            f"probe {name}: {spec.task}, {len(probe.train):,} of {len(splits.train):,} training "
            f"rows, {len(probe.dev):,} of {len(splits.dev):,} dev rows, metric {probe.metric}"
        )
        probes.append(probe)
    return probes


def _splits(path: Path, saved: Path) -> Splits:
    """Rows of a probe; columns are detected, since options of one file would not fit the others."""
    try:
        return load_splits(path, DataSpec(), saved=saved)
    except InputFileError as fault:
        if "--" not in str(fault):
            raise
        raise InputFileError(
            f"{fault}; for a probe, write that into the file: columns called text (or text_a and "
            "text_b) and label are detected"
        ) from fault
