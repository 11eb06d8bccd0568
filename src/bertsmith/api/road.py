"""The road to BERT: models from n-gram to BERT on the same documents, as one table and page."""

from __future__ import annotations

import time
from collections.abc import Callable

from bertsmith.api.observer import Observer, executing
from bertsmith.errors import ConfigError
from bertsmith.files.atomic_file import write_staged
from bertsmith.files.paths import GivenPath, GivenPaths, path_of, paths_of
from bertsmith.files.strict_json import write_json
from bertsmith.studies.road.material import prepare_material
from bertsmith.studies.road.page import road_page
from bertsmith.studies.road.request import RoadRequest
from bertsmith.studies.road.study import RoadStudy, check_settings, make_study
from bertsmith.studies.road.table import RoadTable
from bertsmith.studies.road.word_tests import WordTests
from bertsmith.training.execution.execution import RunSettings
from bertsmith.training.loop.schedule import seconds
from bertsmith.training.repeat.trials import Trials, held, run_trials

PAGE, JSON_FILE = "road.html", "road.json"
RUN = RunSettings(precision="fp32")  # the same number format for all models


def read_road(
    request: RoadRequest, *, notice: Callable[[str], None] = lambda line: None
) -> RoadStudy:
    """Check a request, then split, tokenize and prepare its tests; no model is trained."""
    began = time.monotonic()
    request.check()
    check_settings(request.settings)
    words = WordTests.read(request.similarity, request.analogies)
    return make_study(prepare_material(request, notice), words, began)


def write_road(study: RoadStudy, done: Trials) -> RoadTable:
    """The table, and its files in the folder of the road."""
    table = study.table(done)
    write_json(study.folder / JSON_FILE, table.to_json())
    names = ", ".join(path.name for path in study.material.request.files)
    write_staged(study.folder / PAGE, road_page(table, title=f"The road to BERT: {names}").encode())
    return table


def road(
    files: GivenPaths,
    out: GivenPath,
    *,
    budget: str | float | None = None,
    steps: int | None = None,
    labels: GivenPath | None = None,
    similarity: GivenPaths = (),
    analogies: GivenPaths = (),
) -> RoadTable:
    """Train models from n-gram to BERT on the same documents, test them, compare them.

    `budget` ("30m") is for everything, `steps` are of each neural model; the same call resumes. The
    table is also in `out`, as a page and as JSON.
    """
    try:
        time_given = None if budget is None else float(seconds(budget))
    except ValueError as fault:
        raise ConfigError(f"budget: {fault}") from fault
    request = RoadRequest(
        files=paths_of("files", files),
        out=path_of("out", out),
        budget=time_given,
        steps=steps,
        labels=None if labels is None else path_of("labels", labels),
        similarity=paths_of("similarity", similarity),
        analogies=paths_of("analogies", analogies),
    )
    observer = Observer()
    study = read_road(request, notice=observer.note)
    with (
        executing(RUN, study.folder, observer) as (execution, _),
        held(study.folder, execution.ranks),
    ):
        done = run_trials(
            study.trials(execution), study.folder, notice=observer.note, keep_going=True
        )
    if done.stopped is not None:
        raise ConfigError(f"{study.folder} was stopped; the same call resumes")
    return write_road(study, done)
