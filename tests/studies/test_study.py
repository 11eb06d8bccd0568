"""A study of one's own: planned, run once, resumed, written as JSON, Markdown and a page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from markupsafe import Markup

from bertsmith.cli.shared.studies import StudyCommand
from bertsmith.errors import InputFileError
from bertsmith.report.elements.page import paragraph
from bertsmith.studies.study import (
    Findings,
    Study,
    StudyPlan,
    StudyTable,
    run_study,
    write_study,
)
from bertsmith.training.execution.execution import Execution, RunSettings
from bertsmith.training.loop.progress import Watcher
from bertsmith.training.repeat.trials import Trial, TrialResult, Trials


@dataclass(frozen=True, kw_only=True)
class HeightStudy(Study[Findings]):
    folder: Path
    trees: Sequence[str]
    begun: list[str] = field(default_factory=list)
    title: str = ""
    name: str = "heights"
    keep_going: bool = False

    def plan(self, execution: Execution) -> StudyPlan:
        trials = [Trial(name=tree, key=tree, run=self._run(tree)) for tree in self.trees]
        table = StudyTable(heads=["tree", "key"], rows=[[one.name, one.key] for one in trials])
        return StudyPlan(
            trials=trials, price=["it costs nothing"], table=table, record={"trees": len(trials)}
        )

    def _run(self, tree: str) -> Any:
        def run(watch: Watcher | None) -> TrialResult:
            self.begun.append(tree)
            if tree == "stump":
                raise InputFileError("a stump has no height")
            return TrialResult(name=tree, figures={"height": float(len(tree))}, seconds=0.0)

        return run

    def result(self, done: Trials) -> Findings:
        heights = {one.name: one.figures["height"] for one in done.rows}
        rows = [[name, f"{height:.1f}"] for name, height in heights.items()]
        return Findings(
            record={"heights": heights},
            tables=[StudyTable(heads=["tree", "height"], rows=rows)],
            notes=[f"failed: {name}: {why}" for name, why in done.failed.items()],
        )

    def sections(self, result: Findings) -> list[Markup]:
        return [paragraph(f"{len(result.record['heights'])} trees <b>")]


def test_finished_runs_are_not_repeated(tmp_path: Path) -> None:
    study = HeightStudy(folder=tmp_path, trees=("oak", "beech"))
    first = run_study(study, study.plan(Execution()))
    again = run_study(study, study.plan(Execution()))
    assert study.begun == ["oak", "beech"]
    assert study.result(again).to_json() == study.result(first).to_json()
    assert again.rows[1].figures == {"height": 5.0}


def test_a_study_with_a_title_writes_its_three_files(tmp_path: Path) -> None:
    study = HeightStudy(folder=tmp_path, trees=("oak", "beech"), title="Heights | of trees")
    result = study.result(run_study(study, study.plan(Execution())))
    files = write_study(study, result)
    assert [path.name for path in files] == ["heights.html", "heights.md", "heights.json"]
    page, text, record = (path.read_text() for path in files)
    assert "2 trees &lt;b&gt;" in page
    assert "# Heights \\| of trees" in text
    assert "| oak | 3.0 |" in text
    assert json.loads(record) == {"heights": {"oak": 3.0, "beech": 5.0}}


def test_a_study_without_a_title_writes_none(tmp_path: Path) -> None:
    study = HeightStudy(folder=tmp_path, trees=("oak",))
    result = study.result(run_study(study, study.plan(Execution())))
    assert write_study(study, result) == []
    assert {path.name for path in tmp_path.iterdir()} == {"finished", "lock"}


def test_an_error_in_a_run_ends_a_study_or_not(tmp_path: Path) -> None:
    trees = ("stump", "oak")
    strict = HeightStudy(folder=tmp_path / "strict", trees=trees)
    with pytest.raises(InputFileError, match="no height"):
        run_study(strict, strict.plan(Execution()))
    patient = HeightStudy(folder=tmp_path / "patient", trees=trees, keep_going=True)
    done = run_study(patient, patient.plan(Execution()))
    assert patient.result(done).notes == ["failed: stump: a stump has no height"]
    assert [one.name for one in done.rows] == ["oak"]


def test_nothing_to_run_leaves_no_folder(tmp_path: Path) -> None:
    study = HeightStudy(folder=tmp_path / "out", trees=())
    assert run_study(study, study.plan(Execution())).rows == ()
    assert not (tmp_path / "out").exists()


def printing(out: Path, *, as_json: bool = False) -> StudyCommand:
    run = RunSettings(precision="fp32")
    return StudyCommand(run=run, out=out, as_json=as_json, quiet=True)


def test_the_command_of_a_study_prints_price_table_and_places(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = HeightStudy(folder=tmp_path, trees=("oak", "beech"), title="Heights")
    printing(tmp_path).print(lambda process: study)
    shown = capsys.readouterr()
    assert shown.out.splitlines() == [
        "tree   height",
        "oak       3.0",
        "beech     5.0",
        f"page, Markdown and JSON: {tmp_path}/heights.html, heights.md, heights.json",
    ]
    printing(tmp_path, as_json=True).print(lambda process: study)
    assert json.loads(capsys.readouterr().out) == {"heights": {"oak": 3.0, "beech": 5.0}}
