"""Fine-tuning on rows in memory; the result is the files of a model folder."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bertsmith.errors import ConfigError, InputFileError
from bertsmith.files.safe_folder import Folder
from bertsmith.labeled.example import Example
from bertsmith.labeled.split.stratify import assign, usual_group
from bertsmith.runtime.load_predictor import load_predictor
from bertsmith.runtime.predictor import Predictor
from bertsmith.runtime.selection import Precision
from bertsmith.tasks.kinds import task_kind
from bertsmith.training.execution.execution import choose_execution
from bertsmith.training.kinds.labeled.learner import FinetuneJob, finetune
from bertsmith.training.kinds.labeled.recipe import FinetuneRecipe
from bertsmith.training.kinds.labeled.rows import LabeledRows

log = logging.getLogger(__name__)

PREFIX = "bertsmith-fit-"


def fit_rows(
    task: str,
    rows: Sequence[Example],
    *,
    model: str,
    recipe: FinetuneRecipe,
    dev: float,
    device: str | None = None,
) -> dict[str, bytes]:
    """The files of the fine-tuned folder by name; a share `dev` of the rows chooses its weights."""
    train, held_out = _parts(rows, dev, recipe.run.seed)
    rows_of = LabeledRows(train=train, dev=held_out, known=task_kind(task).known(rows))
    job = FinetuneJob(recipe=recipe, task=task, model=model, rows=rows_of)
    done = finetune(job, execution=choose_execution(recipe.run, device=device)).finished
    if done is None:
        raise ConfigError("training was stopped before its end")
    with tempfile.TemporaryDirectory(prefix=PREFIX) as home:
        done.save(Path(home))
        return files_of(Folder.at(Path(home)))


def files_of(folder: Folder) -> dict[str, bytes]:
    """The files of a model folder by name."""
    names = (name for name in folder.names() if (folder.path / name).is_file())
    return {name: (folder.path / name).read_bytes() for name in names}


def load_files(
    files: dict[str, bytes], *, device: str = "cpu", precision: Precision = "fp32"
) -> Predictor:
    """The predictor of a folder's files."""
    with tempfile.TemporaryDirectory(prefix=PREFIX) as home:
        for name, content in files.items():
            if Path(name).name != name:
                raise ConfigError(f"{name!r} is no name of a file in a model folder")
            (Path(home) / name).write_bytes(content)
        return load_predictor(home, device=device, precision=precision)


def _parts(
    rows: Sequence[Example], dev: float, seed: int
) -> tuple[Sequence[Example], Sequence[Example]]:
    """Rows to learn from, and rows to choose the best weights by: the same if they are few."""
    if not 0 <= dev < 1:
        raise ConfigError(f"dev is the share of rows held out, from 0 to less than 1, not {dev}")
    if dev == 0:
        return rows, rows
    try:
        whose = assign(rows, seed=seed, shares=(1 - dev, dev, 0.0), group=usual_group(rows))
    except InputFileError:
        log.info("%d rows are too few to hold some out; weights are chosen by all", len(rows))
        return rows, rows
    train = [row for row, part in zip(rows, whose, strict=True) if part == 0]
    held_out = [row for row, part in zip(rows, whose, strict=True) if part == 1]
    return train, held_out
