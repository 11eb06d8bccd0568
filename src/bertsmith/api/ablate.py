"""Ablation: a recipe and variations of it, with seeds and probes, as one table with intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from bertsmith.api.observer import Observer, executing
from bertsmith.config import Overrides, overrides_of
from bertsmith.errors import ConfigError, InputFileError, check_type
from bertsmith.files.atomic_file import write_staged
from bertsmith.files.atomic_folder import make_folder
from bertsmith.files.strict_json import write_json
from bertsmith.labeled.spec import DataSpec
from bertsmith.labeled.split.splits import Splits, load_splits
from bertsmith.labeled.split.stratify import some_rows
from bertsmith.studies.ablation.cost import measured_speed
from bertsmith.studies.ablation.equal_tokens import equal_tokens
from bertsmith.studies.ablation.page import ablation_markdown, ablation_page
from bertsmith.studies.ablation.runs import (
    Ablation,
    ProbeRows,
    Probing,
    ablation_table,
    ablation_trials,
    check_ablation,
    comparisons,
    priced,
)
from bertsmith.studies.ablation.table import AblationTable, standard_errors_needed
from bertsmith.studies.ablation.variations import GridRow, find_grid, variations
from bertsmith.training.execution.execution import Execution
from bertsmith.training.kinds.labeled.recipe import load_finetune_recipe
from bertsmith.training.repeat.trials import Trial, TrialResult, held, run_trials, stored_result
from bertsmith.wording import counted, duration

PAGE, JSON_FILE, MARKDOWN = "ablation.html", "ablation.json", "ablation.md"
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


def ablate(
    recipe: str,
    corpus: str | Path,
    out: str | Path,
    *,
    vary: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
    seeds: int = 3,
    probes: Sequence[str | Path] = (),
    probing: Literal["frozen", "tuned", "both"] = "tuned",
) -> AblationTable:
    """Pre-train a recipe and its variations with the same seeds, probe them, compare them.

    The same call again resumes. `vary` are settings such as "mask.rate=0.3"; `probes` are files of
    labeled rows. The table is also in `out`, as a page, Markdown and JSON.
    """
    check_type("recipe", recipe, str)
    check_type("corpus", corpus, str, Path)
    check_type("out", out, str, Path)
    request = AblationRequest(
        recipe=recipe,
        corpus=Path(corpus),
        out=Path(out),
        vary=vary,
        settings=overrides_of(settings),
        seeds=seeds,
        probes=[Path(probe) for probe in probes],
        probing=probing,
    )
    study = read_ablation(request)
    with (
        executing(study.base.run, study.folder, None) as (execution, observer),
        held(study.folder, execution.ranks),
    ):
        trials, cost = plan_ablation(study, execution)
        observer.lines(cost.lines())
        done = run_trials(trials, study.folder, ranks=execution.ranks, notice=observer.note)
    if done.stopped is not None:
        raise ConfigError(f"{study.folder} was stopped; the same call resumes")
    return write_ablation(study, done.rows, title=request.recipe)


def read_ablation(request: AblationRequest, observer: Observer | None = None) -> Ablation:
    """Rows, seeds and probes of a request, checked; nothing is trained."""
    observer = observer or Observer()
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
        probes=tuple(_probes(request, observer)),
        probing=WAYS[request.probing],
    )
    return replace(study, rows=equal_tokens(study.rows, check_ablation(study)))


def _chosen(rows: Sequence[GridRow], only: Sequence[str]) -> list[GridRow]:
    from bertsmith.errors import unknown

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


def _probes(request: AblationRequest, observer: Observer) -> list[ProbeRows]:
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
        observer.note(
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


@dataclass(frozen=True, slots=True, kw_only=True)
class AblationCost:
    """What is to be done: models and probes in all, runs that are left, about how many seconds.

    `needed`: a star needs a mean difference of so many of its standard errors.
    """

    rows: int
    seeds: int
    models: int
    probes: int
    left: int
    seconds: float
    needed: float
    notes: tuple[str, ...]

    def lines(self) -> list[str]:
        """In words."""
        whole = (
            f"{self.rows} rows x {self.seeds} seeds: {counted(self.models, 'model')} and "
            f"{counted(self.probes, 'probe')}"
        )
        if not self.left:
            return [f"{whole}, all finished", *self.notes]
        part = "" if self.left == self.models + self.probes else f"{self.left} of them are left, "
        lines = [
            f"{whole}, {part}about {duration(self.seconds)} on this machine if nothing else runs "
            "(from a few timed steps of the base)"
        ]
        if math.isfinite(self.needed):
            lines.append(
                f"with {self.seeds} seeds and so many comparisons, a star needs a difference of "
                f"{self.needed:.0f} times its standard error; more seeds need less"
            )
        return [*lines, *self.notes]


def plan_ablation(study: Ablation, execution: Execution) -> tuple[list[Trial], AblationCost]:
    """All runs, and what they cost: a few steps of the base are timed, the rest is arithmetic."""
    trials, corpus = ablation_trials(study, execution), check_ablation(study)
    left = [one.name for one in trials if stored_result(one, study.folder) is None]
    if left:
        trials = priced(study, trials, corpus, measured_speed(study.base, corpus, execution))
    models = len({id(row) for row in study.owners().values()}) * len(study.seeds)
    return trials, AblationCost(
        rows=len(study.rows),
        seeds=len(study.seeds),
        models=models,
        probes=len(trials) - models,
        left=len(left),
        seconds=sum(trial.cost for trial in trials if trial.name in left),
        needed=standard_errors_needed(len(study.seeds), comparisons(study)),
        notes=tuple(f"{row.name}: {row.note}" for row in study.rows if row.note),
    )


def write_ablation(study: Ablation, results: Sequence[TrialResult], *, title: str) -> AblationTable:
    """The table, and its files in the folder of the study."""
    table = ablation_table(study, results)
    words = f"ablation: {title}"
    write_json(study.folder / JSON_FILE, table.to_json())
    write_staged(study.folder / MARKDOWN, ablation_markdown(table, title=words).encode())
    write_staged(study.folder / PAGE, ablation_page(table, title=words).encode())
    return table
