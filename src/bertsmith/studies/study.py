"""One study: runs that answer a question, what they cost, the tables that they become, its files.

Every study (lengths, vectors, GLUE, ablation, road) is planned, run, resumed, printed and written
here; its own file says which runs there are and how they are compared.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from markupsafe import Markup

from bertsmith.files.atomic_file import write_staged
from bertsmith.files.digest import file_marks
from bertsmith.files.strict_json import write_json
from bertsmith.folders.read import read_folder
from bertsmith.report.elements import markdown
from bertsmith.report.elements.page import page
from bertsmith.tasks.kinds import task_kind
from bertsmith.training.execution.execution import Execution
from bertsmith.training.execution.ranks import Ranks
from bertsmith.training.repeat.trials import (
    Notice,
    StudyProgress,
    Trial,
    Trials,
    held,
    run_trials,
)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyTable:
    """Runs as rows of text: the first column names the run, the others are its figures."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


class StudyResult(Protocol):
    """What a study found: tables of its runs, with sentences before and after."""

    @property
    def head(self) -> Sequence[str]:
        """Lines before the tables."""

    @property
    def tables(self) -> Sequence[StudyTable]:
        """The runs; none if there was nothing to run."""

    @property
    def notes(self) -> Sequence[str]:
        """What must be known to read the tables, and what they say."""

    def to_json(self) -> dict[str, Any]:
        """Everything, as plain values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """A result as it is shown, for studies that compute nothing else from their runs."""

    record: Mapping[str, Any]
    head: Sequence[str] = ()
    tables: Sequence[StudyTable] = ()
    notes: Sequence[str] = ()

    def to_json(self) -> dict[str, Any]:
        """The record."""
        return dict(self.record)


Result = TypeVar("Result", bound=StudyResult)


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyPlan:
    """The runs of a study before any begins: their price in words, as a table and as JSON."""

    trials: Sequence[Trial]
    price: Sequence[str] = ()
    table: StudyTable | None = None
    record: Mapping[str, Any] = field(default_factory=dict)


class Study(Protocol[Result]):
    """Runs that answer one question, each finished once in `folder`, and what they say together.

    With `keep_going` an error in one of the runs does not end the others. A study with a `title`
    writes its files, NAME.json, NAME.md and NAME.html, into its folder.
    """

    name: str
    folder: Path
    title: str = ""
    keep_going: bool = False

    def plan(self, execution: Execution) -> StudyPlan:
        """All runs, and what those that are left will cost."""

    def result(self, done: Trials) -> Result:
        """What the finished runs say."""

    def sections(self, result: Result) -> Sequence[Markup]:
        """The sections of the page."""
        return ()


def run_study(
    study: Study[Any],
    plan: StudyPlan,
    *,
    ranks: Ranks | None = None,
    watch: Callable[[StudyProgress], None] | None = None,
    notice: Notice = log.info,
) -> Trials:
    """Every run that is not finished; the same call resumes, and no second process may."""
    if not plan.trials:
        return Trials(rows=())
    ranks = ranks or Ranks()
    with held(study.folder, ranks):
        return run_trials(
            plan.trials,
            study.folder,
            ranks=ranks,
            watch=watch,
            notice=notice,
            keep_going=study.keep_going,
        )


def write_study(study: Study[Result], result: Result) -> list[Path]:
    """The JSON, Markdown and page of a study that has a title; their paths."""
    if not study.title:
        return []
    html, text, record = (study.folder / f"{study.name}.{end}" for end in ("html", "md", "json"))
    write_json(record, result.to_json())
    write_staged(text, study_markdown(result, title=study.title).encode())
    write_staged(html, page(study.title, study.sections(result)).encode())
    return [html, text, record]


def study_markdown(result: StudyResult, *, title: str) -> str:
    """The tables and their notes as Markdown."""
    lines = [f"# {markdown.words(title)}", ""]
    for table in result.tables:
        rows = [[markdown.words(cell) for cell in row] for row in table.rows]
        lines += [*markdown.table([markdown.words(head) for head in table.heads], rows), ""]
    lines += [f"- {markdown.words(note)}" for note in result.notes]
    return "\n".join(lines) + "\n"


def weights_mark(model: str) -> str:
    """A fingerprint of a model folder's weights by file size and time."""
    home = read_folder(model).path
    files = sorted(path for path in home.rglob("*.safetensors") if path.is_file())
    return " ".join(file_marks(files))


def figure_text(value: float | None) -> str:
    """A metric in a table."""
    return "-" if value is None or value != value else f"{value:.4f}"


def shown_figures(task: str, figures: Mapping[str, float | None], first: str) -> list[str]:
    """The names of the metrics shown in a table, the deciding one first."""
    kind = task_kind(task)
    names = [name for name in kind.figures or (kind.metric.main,) if name in figures]
    return list(dict.fromkeys([first, *names])) if first in figures else names
