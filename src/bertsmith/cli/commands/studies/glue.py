"""`bertsmith glue`: fine-tune a model on every available data set of GLUE and CLUE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertsmith.cli.shared.options import Json, Quiet, StudyFolder
from bertsmith.cli.shared.options_of import spread
from bertsmith.cli.shared.recipe_options import RecipeOptions
from bertsmith.errors import ConfigError, InputFileError, unknown
from bertsmith.setting import DATA, Setting

if TYPE_CHECKING:
    from bertsmith.studies.data_sets import AvailableSets
    from bertsmith.training.repeat.trials import Trials

What = Annotated[
    list[str],
    typer.Argument(metavar="MODEL DATA", help="Model folder or name, and a folder of data sets."),
]
DataSets = Annotated[
    list[str] | None,
    Setting("Data set: cola, sst2, tnews, squad, ...; repeatable.", DATA, metavar="SET"),
]
RowCount = Annotated[
    int | None, Setting("Maximum number of training and of dev rows.", DATA, min=2)
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Which(RecipeOptions):
    """Which data sets, how much of them, and how they are trained on."""

    data_set: DataSets = None
    max_rows: RowCount = None
    out: StudyFolder = None


@spread
def glue(what: What, which: Which, as_json: Json = False, quiet: Quiet = False) -> None:
    """Fine-tune a model on every available data set of GLUE and CLUE, and print a table.

    DATA holds folders (or files) named as published: CoLA, SST-2, tnews_public, ...; each is
    trained with its recipe. Other data sets with a recipe (squad, conll2003, ...) run if named with
    --data-set. The same command resumes; finished data sets are not repeated.

    Examples:

        bertsmith glue my-bert glue_data/

        bertsmith glue my-bert glue_data/ --data-set cola --data-set sst2 --max-rows 2000
    """
    from bertsmith.api.studies import weights_mark
    from bertsmith.cli.shared.console import write_json, write_lines
    from bertsmith.cli.shared.studies import studying
    from bertsmith.studies.data_sets import SETS, find_sets
    from bertsmith.studies.glue import DataSetRun, glue_trial

    if len(what) != 2:
        raise ConfigError(
            "give a model and a folder of data sets: bertsmith glue my-bert glue_data/"
        )
    model, data = what[0], Path(what[1])
    mark = weights_mark(model)
    sets = find_sets(data)
    out = which.out or Path(f"{Path(model).resolve().name}-glue")
    runs = [
        DataSetRun(
            one=SETS[name],
            path=sets.usable[name],
            recipe=which.read(name),
            model=model,
            out=out / name,
            rows=which.max_rows,
            mark=mark,
        )
        for name in _wanted(sets, which.data_set or (), data)
    ]
    with studying(runs[0].recipe.run, out, device=which.device, quiet=quiet) as study:
        study.observer.note(f"models and finished runs are stored in {out}")
        trials = [glue_trial(run, study.execution) for run in runs]
        done = study.run(trials, keep_going=True)
    record = _record(model, data, done, sets)
    if as_json:
        write_json(record)
    else:
        write_lines(_lines(record))
    if done.failed:
        reasons = "; ".join(f"{name}: {_first(why)}" for name, why in done.failed.items())
        raise InputFileError(f"{len(done.failed)} of {len(runs)} data sets failed: {reasons}")


def _wanted(sets: AvailableSets, only: Sequence[str], data: Path) -> list[str]:
    """The data sets to run: those of GLUE and CLUE that are available, or those named."""
    from bertsmith.studies.data_sets import SETS, SUITES

    for name in only:
        if name not in SETS:
            raise unknown("data set", name, SETS)
        if name not in sets.usable:
            why = sets.unusable.get(name, f"{data} holds no folder or file of that name")
            raise InputFileError(f"{name}: {why}")
    names = list(only) or [name for name in sets.usable if SETS[name].suite in SUITES]
    if not names:
        known = ", ".join(name for name, one in SETS.items() if one.suite in SUITES)
        raise InputFileError(
            f"{data} holds no data set of GLUE or CLUE; folders are known by these names: {known}"
        )
    return list(dict.fromkeys(names))


def _record(model: str, data: Path, done: Trials, sets: AvailableSets) -> dict[str, Any]:
    from bertsmith.studies.data_sets import SETS, SUITES

    ran = {one.name for one in done.rows}
    return {
        "model": model,
        "data": str(data),
        "sets": [{"suite": SETS[one.name].suite, **one.to_json()} for one in done.rows],
        "failed": dict(done.failed),
        "absent": {suite: sets.absent(suite) for suite in SUITES},
        "unusable": dict(sets.unusable),
        "not_run": [name for name in sets.usable if name not in ran and name not in done.failed],
    }


def _lines(record: Mapping[str, Any]) -> list[str]:
    """The table, a line for each figure; then what is not in it."""
    from bertsmith.cli.shared.console import table_lines
    from bertsmith.cli.shared.studies import figure_text
    from bertsmith.studies.data_sets import SETS
    from bertsmith.wording import duration

    rows = []
    for run in record["sets"]:
        for place, figure in enumerate(SETS[run["name"]].figures):
            counts = run["rows"]
            published = run["published"].get(figure)
            cells = [
                run["name"],
                f"{counts['train']:,}",
                f"{counts['dev']:,}",
                duration(run["seconds"]),
            ]
            rows.append(
                [
                    *(cells[:3] if place == 0 else ["", "", ""]),
                    figure,
                    figure_text(run["figures"].get(figure)),
                    figure_text((run.get("test") or {}).get(figure)),
                    figure_text(run["majority"].get(figure)),
                    f"{published:.3f} ({run['published_rows']})" if published else "-",
                    cells[3] if place == 0 else "",
                ]
            )
    heads = ["set", "train rows", "dev rows", "metric", "dev", "test", "majority class"]
    lines = table_lines([*heads, "BERT base", "time"], rows) if rows else []
    if rows:
        lines.append("BERT base: as published, on the rows in brackets; 110 million parameters")
    return [*lines, *_left_out(record)]


def _left_out(record: Mapping[str, Any]) -> list[str]:
    lines = [f"failed: {name}: {_first(why)}" for name, why in record["failed"].items()]
    lines += [
        f"missing from {suite}: {', '.join(names)}"
        for suite, names in record["absent"].items()
        if names
    ]
    lines += [f"not usable for training: {name}: {why}" for name, why in record["unusable"].items()]
    if record["not_run"]:
        lines.append(
            f"available, but not run (name them with --data-set): {', '.join(record['not_run'])}"
        )
    return lines


def _first(message: str) -> str:
    return message.partition("\n")[0]
