"""Several small runs: each is made once, its result is stored, and its progress reported."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bertsmith.errors import BertsmithError, ConfigError
from bertsmith.files.atomic_file import write_staged
from bertsmith.files.digest import json_digest
from bertsmith.files.folder_lock import FolderLock
from bertsmith.training.execution.execution import Execution
from bertsmith.training.finetune.finetune import FinetuneJob, facts, finetune
from bertsmith.training.finetune.recipe import FinetuneRecipe
from bertsmith.training.loop.progress import Progress, Watcher
from bertsmith.training.loop.run import Outcome
from bertsmith.training.studies.store import TrialResult, read_result, write_result

log = logging.getLogger(__name__)

SOON = 0.02  # of all work: before it, how fast things go is not known
MINUTES = 100  # seconds from which on they are told in minutes
KEY = "trial.key"  # in the folder of a run that goes on: what it is a run of
FINISHED = "finished"  # the folder of what is known of finished runs


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Runs that are made in one go, mostly a single one.

    `keys` has, by name, a digest of all that decides what a run comes to. `run` makes those that
    are asked for, or gives the Outcome of a run that a signal stopped. `cost` is how long it
    takes beside the others, for the time that is left.
    """

    keys: Mapping[str, str]
    run: Callable[[Sequence[str], Watcher | None], Mapping[str, TrialResult] | Outcome]
    cost: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How far the runs are: which one of how many, the share of all work, seconds left."""

    name: str
    number: int
    of: int
    share: float
    left: float | None
    run: Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Trials:
    """The finished runs, in the order asked for; `stopped` tells of a signal.

    `failed` says, by name, why runs could not be made.
    """

    rows: tuple[TrialResult, ...]
    failed: Mapping[str, str] = field(default_factory=dict)
    stopped: Outcome | None = None


Notice = Callable[[str], None]


def run_trials(
    trials: Sequence[Trial],
    folder: Path,
    *,
    watch: Callable[[Look], None] | None = None,
    notice: Notice = log.info,
    go_on: bool = False,
) -> Trials:
    """Make every run that is not finished; the same call again resumes.

    `go_on`: an error in one of them (its data cannot be read, say) does not end the others.
    """
    names = [name for trial in trials for name in trial.keys]
    if not names or len(set(names)) < len(names):
        raise ConfigError(f"runs {names}: give one or more, each name once")
    with FolderLock(folder, work="run", instead="folder"):
        store = folder / FINISHED
        keys = {name: key for trial in trials for name, key in trial.keys.items()}
        found = {n: tried for n, key in keys.items() if (tried := read_result(store, n, key))}
        failed: dict[str, str] = {}
        if found:
            notice(f"{len(found)} of {len(names)} runs are finished already, see {folder}")
        open_trials = [trial for trial in trials if not found.keys() >= trial.keys.keys()]
        clock = _Clock(sum(trial.cost for trial in open_trials), watch)
        for number, trial in enumerate(open_trials, start=1):
            wanted = [name for name in trial.keys if name not in found]
            title = wanted[0] if len(wanted) == 1 else f"{len(wanted)} together"
            notice(f"{title} begins, {number} of {len(open_trials)}{clock.said()}")
            look = clock.watcher(title, number, len(open_trials), trial.cost)
            try:
                told = trial.run(wanted, look)
            except BertsmithError as fault:
                if not go_on:
                    raise
                failed |= dict.fromkeys(wanted, str(fault))
                told = {}
            if isinstance(told, Outcome):
                return Trials(rows=_ordered(names, found), failed=failed, stopped=told)
            for name, one in told.items():
                write_result(store, one, trial.keys[name])
            found |= told
            clock.ended(trial.cost)
    return Trials(rows=_ordered(names, found), failed=failed)


def _ordered(names: Sequence[str], found: Mapping[str, TrialResult]) -> tuple[TrialResult, ...]:
    return tuple(found[name] for name in names if name in found)


def finetune_trial(
    name: str, job: FinetuneJob, execution: Execution, *, mark: str = "", cost: float = 1.0
) -> Trial:
    """A run of fine-tuning, in `job.folder`, which goes away when it is finished.

    `mark` tells the weights that it begins with from others of the same name.
    """
    key = job_key(job, execution, mark=mark)

    def run(_: Sequence[str], watch: Watcher | None) -> Mapping[str, TrialResult] | Outcome:
        _begin(job.folder, key)
        done = finetuned(name, job, execution, watch)
        if isinstance(done, Outcome):
            return done
        shutil.rmtree(job.folder)
        return {name: done}

    return Trial(keys={name: key}, run=run, cost=cost)


def _begin(folder: Path, key: str) -> None:
    """A folder to run in: what a stopped run with other settings left there goes away."""
    note = folder / KEY
    if note.exists() and note.read_text(encoding="utf-8", errors="replace") != key:
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_staged(note, key.encode())


def finetuned(
    name: str, job: FinetuneJob, execution: Execution, watch: Watcher | None
) -> TrialResult | Outcome:
    """A run of fine-tuning as a row of a table, or how it was stopped."""
    if execution.ranks.world > 1:
        raise ConfigError("small runs share one process; start the command without a launcher")
    done = finetune(job, execution=execution, watch=watch)
    if done.dev_figures is None:
        return done.outcome
    return TrialResult(
        name=name,
        figures=done.dev_figures,
        seconds=done.outcome.seconds,
        answers=done.dev_predictions,
    )


def job_key(job: FinetuneJob, execution: Execution, *, mark: str = "") -> str:
    """A digest of all that decides what a job comes to."""
    return json_digest({**facts(job, execution), **recipe_facts(job.recipe), "mark": mark})


def recipe_facts(recipe: FinetuneRecipe) -> dict[str, Any]:
    """All of a recipe that decides what comes out."""
    tree = recipe.model_dump(mode="json", exclude={"about", "run"})
    return {"recipe": tree, "seed": recipe.run.seed}


class _Clock:
    """How much of all the work is done, and how long the rest will take."""

    def __init__(self, total: float, watch: Callable[[Look], None] | None) -> None:
        self._total, self._done = total, 0.0
        self._began = time.monotonic()
        self._watch = watch

    def left(self, share: float) -> float | None:
        if share < SOON:
            return None
        return (time.monotonic() - self._began) * max(0.0, 1 - share) / share

    def said(self) -> str:
        left = self.left(self._done / self._total)
        if left is None:
            return ""
        told = f"{left:.0f} s" if left < MINUTES else f"{left / 60:.0f} min"
        return f"; about {told} left for all"

    def ended(self, cost: float) -> None:
        self._done += cost

    def watcher(self, name: str, number: int, of: int, cost: float) -> Watcher | None:
        tell = self._watch
        if tell is None:
            return None

        def watch(look: Progress) -> None:
            share = (self._done + cost * look.share) / self._total
            tell(
                Look(name=name, number=number, of=of, share=share, left=self.left(share), run=look)
            )

        return watch
