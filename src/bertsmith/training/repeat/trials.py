"""Studies: several small runs, each finished once, its result stored, its progress reported."""

from __future__ import annotations

import json
import logging
import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from bertsmith.config import Settings
from bertsmith.errors import BertsmithError, ConfigError, LostRankError
from bertsmith.files.atomic_file import write_staged
from bertsmith.files.atomic_folder import make_folder
from bertsmith.files.digest import json_digest
from bertsmith.files.folder_lock import FolderLock
from bertsmith.files.strict_json import json_values, write_json
from bertsmith.tasks.prediction import Prediction
from bertsmith.training.execution.execution import Execution
from bertsmith.training.execution.rank_sync import on_first
from bertsmith.training.execution.ranks import Ranks
from bertsmith.training.learner import Learner, Recipe, Rows, TrainingJob
from bertsmith.training.loop.progress import Progress, Watcher
from bertsmith.training.loop.run import Outcome
from bertsmith.wording import counted

log = logging.getLogger(__name__)

NAME = re.compile(r"[\w.+-]+")
SOON = 0.02  # of all work: before it, the speed is not known
MINUTES = 100  # seconds from which on times are given in minutes
KEY = "trial.key"  # in the folder of an unfinished run: which run it belongs to
FINISHED = "finished"  # the folder of results

Figures = Mapping[str, float | None]
Notice = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """The result of a finished run: figures of the development rows (None: there is no such)."""

    name: str
    figures: Figures
    seconds: float
    more: Mapping[str, Any] = field(default_factory=dict)  # plain values that belong to it
    answers: Sequence[Prediction] = ()  # to the development rows

    def to_json(self) -> dict[str, Any]:
        """Plain values without the answers."""
        record = {"name": self.name, "figures": self.figures, "seconds": round(self.seconds, 3)}
        return dict(json_values({**record, **self.more}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One run: `key` is a digest of all that decides its result, `cost` its relative duration.

    `run` gives the result, or the Outcome of a run that a signal stopped. The result is stored in
    `record`, by default in a file of the trial's name.
    """

    name: str
    key: str
    run: Callable[[Watcher | None], TrialResult | Outcome]
    cost: float = 1.0
    record: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyProgress:
    """How far the runs are: which one of how many, the share of all work, seconds left."""

    name: str
    number: int
    of: int
    share: float
    left: float | None
    run: Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Trials:
    """The finished runs in order, the errors of failed ones by name, the run that was stopped."""

    rows: tuple[TrialResult, ...]
    failed: Mapping[str, str] = field(default_factory=dict)
    stopped: Outcome | None = None


def held(folder: Path, ranks: Ranks) -> ExitStack:
    """The folder of several runs, locked against a second process."""
    stack = ExitStack()
    lock = FolderLock(folder, work="run", instead="folder")
    on_first(ranks, lambda: stack.enter_context(lock))
    return stack


def run_trials(
    trials: Sequence[Trial],
    folder: Path,
    *,
    ranks: Ranks | None = None,
    watch: Callable[[StudyProgress], None] | None = None,
    notice: Notice = log.info,
    keep_going: bool = False,
) -> Trials:
    """Run every trial that is not finished, in a folder that is `held`; the same call resumes.

    With several `ranks` all of them call this; the first one writes. `keep_going`: an error in one
    of the trials (its data cannot be read, say) does not end the others.
    """
    ranks = ranks or Ranks()
    names = [trial.name for trial in trials]
    if not names or len(set(names)) < len(names):
        raise ConfigError(f"runs {names}: give one or more, each name once")
    failed: dict[str, str] = {}
    stopped: Outcome | None = None
    places = {trial.name: _place(trial, folder) for trial in trials}
    stored = {trial.name: stored_result(trial, folder) for trial in trials}
    missing = {name for name, one in stored.items() if ranks.any(one is None)}
    results = {name: one for name, one in stored.items() if one and name not in missing}
    if results:
        count = counted(len(names), "run")
        notice(f"finished already: {len(results):,} of {count}, see {folder}")
    unfinished = [trial for trial in trials if trial.name not in results]
    clock = _Clock(unfinished, watch)
    for number, trial in enumerate(unfinished, start=1):
        notice(f"{trial.name} begins, {number} of {len(unfinished)}{clock.estimate()}")
        try:
            result = trial.run(clock.watcher(number, trial))
        except LostRankError:
            raise
        except BertsmithError as fault:
            if not keep_going:
                raise
            failed[trial.name] = str(fault)
        else:
            if isinstance(result, Outcome):
                stopped = result
                break
            on_first(ranks, partial(write_result, places[trial.name], result, trial.key))
            results[trial.name] = result
        clock.done += trial.cost
    rows = tuple(results[name] for name in names if name in results)
    return Trials(rows=rows, failed=failed, stopped=stopped)


def stored_result(trial: Trial, folder: Path) -> TrialResult | None:
    """The result of a trial that was finished in this folder before, if it was."""
    return read_result(_place(trial, folder), trial.name, trial.key)


def _place(trial: Trial, folder: Path) -> Path:
    return trial.record or _path(folder / FINISHED, trial.name)


class _Clock:
    """How much of all the work is done, and how long the rest will take."""

    def __init__(
        self, trials: Sequence[Trial], watch: Callable[[StudyProgress], None] | None
    ) -> None:
        self.done = 0.0
        self._count, self._total = len(trials), sum(trial.cost for trial in trials)
        self._began = time.monotonic()
        self._watch = watch

    def left(self, share: float) -> float | None:
        if share < SOON:
            return None
        return (time.monotonic() - self._began) * max(0.0, 1 - share) / share

    def estimate(self) -> str:
        left = self.left(self.done / self._total)
        if left is None:
            return ""
        text = f"{left:.0f} s" if left < MINUTES else f"{left / 60:.0f} min"
        return f"; about {text} left for all"

    def watcher(self, number: int, trial: Trial) -> Watcher | None:
        watch = self._watch
        if watch is None:
            return None

        def report(run: Progress) -> None:
            share = (self.done + trial.cost * run.share) / self._total
            watch(
                StudyProgress(
                    name=trial.name,
                    number=number,
                    of=self._count,
                    share=share,
                    left=self.left(share),
                    run=run,
                )
            )

        return report


def begin_run(folder: Path, key: str) -> None:
    """A folder to run in: what a stopped run with other settings left there is removed."""
    note = folder / KEY
    if note.exists() and note.read_text(encoding="utf-8", errors="replace") != key:
        shutil.rmtree(folder)
    make_folder(folder)
    write_staged(note, key.encode())


def job_key(
    learner: Learner[TrainingJob[Recipe, Rows], Any, Any],
    job: TrainingJob[Recipe, Rows],
    execution: Execution,
    *,
    mark: str = "",
) -> str:
    """A digest of all that decides the result of a job."""
    facts = learner.facts(job, execution)
    seed = job.recipe.run.seed
    return json_digest({**facts, **recipe_facts(job.recipe, seed), "mark": mark})


def recipe_facts(recipe: Settings, seed: int) -> dict[str, Any]:
    """All of a recipe that decides the result."""
    tree = recipe.model_dump(mode="json", exclude={"about", "run"})
    return {"recipe": tree, "seed": seed}


def _path(store: Path, name: str) -> Path:
    if not NAME.fullmatch(name):
        raise ConfigError(f"{name!r} cannot name a run: use letters, digits, ., +, - and _")
    return store / f"{name}.json"


def write_result(path: Path, result: TrialResult, key: str) -> None:
    """Store a finished run under the key of all that decided it."""
    make_folder(path.parent)
    record = {
        "key": key,
        "figures": result.figures,
        "seconds": result.seconds,
        "more": result.more,
        "answers": [one.to_json() for one in result.answers],
    }
    write_json(path, record)


def read_result(path: Path, name: str, key: str) -> TrialResult | None:
    """The stored result of a run with this key, if there is one."""
    try:
        record = json.loads(path.read_bytes())
        if record["key"] != key:
            return None
        return TrialResult(
            name=name,
            figures=dict(record["figures"]),
            seconds=float(record["seconds"]),
            more=record["more"],
            answers=tuple(_prediction(one) for one in record["answers"]),
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        log.warning("%s is damaged; the run is repeated", path)
        return None


def _prediction(record: Mapping[str, Any]) -> Prediction:
    """What is compared of an answer: its value, probabilities and tags."""
    value = record["prediction"]
    return Prediction(
        value=tuple(value) if isinstance(value, list) else value,
        probabilities=record.get("probabilities", {}),
        confidence=record.get("confidence"),
        cut=record.get("tokens_cut", 0),
        tags=tuple(record.get("tags", ())),
    )
