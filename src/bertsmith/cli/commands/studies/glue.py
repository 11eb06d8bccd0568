"""`bertsmith glue`: fine-tune a model on every available data set of GLUE and CLUE."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bertsmith.cli.shared.options import Json, Quiet, StudyFolder
from bertsmith.cli.shared.options_of import spread
from bertsmith.cli.shared.recipe_options import RecipeOptions
from bertsmith.errors import ConfigError, InputFileError
from bertsmith.setting import DATA, Setting

if TYPE_CHECKING:
    from bertsmith.cli.shared.studies import StudyProcess
    from bertsmith.studies.glue import GlueStudy

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
    from bertsmith.cli.shared.studies import StudyCommand
    from bertsmith.studies.glue import first_line, read_glue

    if len(what) != 2:
        raise ConfigError(
            "give a model and a folder of data sets: bertsmith glue my-bert glue_data/"
        )
    model, data = what[0], Path(what[1])
    out = which.out or Path(f"{Path(model).resolve().name}-glue")
    study = read_glue(model, data, out, which.read, only=which.data_set or (), rows=which.max_rows)

    def make(process: StudyProcess) -> GlueStudy:
        process.observer.note(f"models and finished runs are stored in {out}")
        return study

    done = StudyCommand(
        run=study.runs[0].recipe.run,
        out=out,
        as_json=as_json,
        quiet=quiet,
        device=which.device,
    ).print(make)
    if done.failed:
        reasons = "; ".join(f"{name}: {first_line(why)}" for name, why in done.failed.items())
        raise InputFileError(f"{len(done.failed)} of {len(study.runs)} data sets failed: {reasons}")
