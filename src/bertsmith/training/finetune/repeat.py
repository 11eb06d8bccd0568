"""Several runs of fine-tuning (seeds or folds): each is finished once, the best is chosen."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from bertsmith.config import changed
from bertsmith.errors import ConfigError
from bertsmith.files.atomic_file import write_staged
from bertsmith.files.digest import json_digest
from bertsmith.files.folder_lock import FolderLock
from bertsmith.files.strict_json import json_values
from bertsmith.labeled.example import Example
from bertsmith.labeled.split.stratify import fold_numbers
from bertsmith.metrics import better
from bertsmith.metrics.significance import over_seeds
from bertsmith.runtime.ensemble import FIGURES
from bertsmith.runtime.predictor import load_predictor
from bertsmith.tasks.kinds import task_kind
from bertsmith.tasks.model.columns import meta_tables
from bertsmith.tasks.prediction import Prediction
from bertsmith.tasks.task import score
from bertsmith.training.execution.execution import Execution
from bertsmith.training.execution.rank_sync import on_first
from bertsmith.training.finetune.encoder_cache import EncoderCache
from bertsmith.training.finetune.finetune import FinetuneJob, FinetuneResult, facts, finetune
from bertsmith.training.finetune.model import save_task_model
from bertsmith.training.loop.progress import Watcher

log = logging.getLogger(__name__)

CHOSEN = "chosen.json"  # which of the runs the folder above them holds
Notice = Callable[[str], None]
Figures = dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedRun:
    """A finished run: its seed or the number of its fold, its folder, its development figures."""

    number: int
    folder: Path
    figures: Figures


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedRuns:
    """Several runs of one job; `result` is the best of them by its development figure.

    The folder of the job then holds the model of `best`. If a signal stopped a run, `result` is
    that run, and there is no best one yet.
    """

    kind: Literal["seeds", "folds"]
    members: tuple[RepeatedRun, ...]
    result: FinetuneResult
    best: RepeatedRun | None = None
    whole: Figures | None = None  # folds: of all rows, each predicted by the run that never saw it

    @property
    def interval(self) -> dict[str, dict[str, float | int | None]]:
        """Mean, deviation and Student's 95 % interval of the mean of every figure."""
        shared = [name for name in self.members[0].figures if self._has(name)]
        return {
            name: json_values(asdict(over_seeds([one.figures[name] for one in self.members])))
            for name in shared
        }

    def to_json(self) -> dict[str, Any]:
        """`seeds` and `interval`, or `folds`, as the record of a run has them."""
        runs = [
            {self.kind.removesuffix("s"): one.number, "figures": json_values(one.figures)}
            for one in self.members
        ]
        chosen = self.best.number if self.best else None
        if self.kind == "seeds":
            return {"seeds": runs, "interval": self.interval, "chosen": chosen}
        folds = {"runs": runs, "figures": json_values(self.whole or {}), "interval": self.interval}
        return {"folds": {"count": len(runs), **folds, "chosen": chosen}}

    def _has(self, name: str) -> bool:
        return all(name in one.figures for one in self.members)


def held(out: Path, execution: Execution) -> ExitStack:
    """The folder above several runs, locked against a second process."""
    stack = ExitStack()
    lock = FolderLock(out, work="run", instead="folder")
    on_first(execution.ranks, lambda: stack.enter_context(lock))
    return stack


def run_all(
    kind: Literal["seeds", "folds"],
    job: FinetuneJob,
    jobs: Mapping[int, FinetuneJob],
    *,
    execution: Execution,
    watch: Watcher | None,
    notice: Notice,
) -> RepeatedRuns:
    """Every job that is not finished; then the model of the best one goes into the folder above."""
    members: list[RepeatedRun] = []
    best: tuple[RepeatedRun, FinetuneResult | None] | None = None
    name = job.recipe.best.figure
    cache: EncoderCache | None = {} if kind == "seeds" else None  # folds have rows of their own
    for place_in_line, (number, one) in enumerate(jobs.items(), start=1):
        which = f"{kind.removesuffix('s')} {number} ({place_in_line} of {len(jobs)})"
        done: FinetuneResult | None = None
        figures = _finished(one, execution)
        if execution.ranks.any(figures is None):
            notice(f"{which} begins in {one.folder}")
            done = finetune(one, execution=execution, watch=watch, cache=cache)
            if done.dev_figures is None:
                return RepeatedRuns(kind=kind, members=tuple(members), result=done)
            figures = done.dev_figures
            on_first(execution.ranks, partial(_remember, one, figures, execution))
        else:
            notice(f"{which} is finished")
        figures = figures or {}
        member = RepeatedRun(number=number, folder=one.folder, figures=figures)
        members.append(member)
        name = name or next(iter(figures))
        if best is None or better(name, figures[name], best[0].figures[name]):
            best = (member, done)
    if best is None:
        raise ConfigError("there is nothing to run")
    winner = best[0]
    result = best[1] or finetune(jobs[winner.number], execution=execution, watch=watch)
    on_first(execution.ranks, lambda: _put(job, jobs[winner.number], winner, result, str(name)))
    notice(f"{job.folder} holds the model of {kind.removesuffix('s')} {winner.number}")
    return RepeatedRuns(kind=kind, members=tuple(members), result=result, best=winner)


def _finished(job: FinetuneJob, execution: Execution) -> Figures | None:
    """The figures of this very job if it was run to its end before."""
    path = job.folder / FIGURES
    if not path.exists() or not (job.folder / "config.json").exists():
        return None
    try:
        record = json.loads(path.read_bytes())
        if record["job"] != _fingerprint(job, execution):
            return None  # resuming reports what has changed
        return {name: math.nan if v is None else float(v) for name, v in record["figures"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        log.warning("%s is damaged; the run is evaluated again", path)
        return None


def _remember(job: FinetuneJob, figures: Figures, execution: Execution) -> None:
    record = {"job": _fingerprint(job, execution), "figures": json_values(figures)}
    write_staged(job.folder / FIGURES, (json.dumps(record, indent=2) + "\n").encode())


def _fingerprint(job: FinetuneJob, execution: Execution) -> str:
    recipe = job.recipe
    optimizer = recipe.optimizer.model_dump(mode="json")  # of which the loop keeps its own account
    return json_digest({**facts(job, execution), "seed": recipe.run.seed, "optimizer": optimizer})


def _put(
    job: FinetuneJob, chosen: FinetuneJob, member: RepeatedRun, result: FinetuneResult, figure: str
) -> None:
    """The best model into the folder above the runs, with a note where it comes from."""
    if result.model is None or result.tokenizer is None:
        raise ConfigError(f"{chosen.folder} was stopped before its end; run the same command again")
    tables = meta_tables(chosen.train, chosen.recipe.head.meta)
    save_task_model(
        result.model,
        result.tokenizer,
        job.folder,
        recipe=chosen.recipe,
        tables=tables,
        spec=chosen.spec,
    )
    note = {
        "from": member.folder.relative_to(job.folder).as_posix(),
        "because": f"the best {figure} on the development rows",
        "figures": json_values(member.figures),
    }
    write_staged(job.folder / CHOSEN, (json.dumps(note, indent=2) + "\n").encode())


PREDICTIONS = "predictions.folds.jsonl"


def finetune_seeds(
    job: FinetuneJob,
    seeds: Sequence[int],
    *,
    execution: Execution | None = None,
    watch: Watcher | None = None,
    notice: Notice = log.info,
) -> RepeatedRuns:
    """Fine-tune with each seed, in OUT/seeds/SEED; finished runs are not repeated.

    OUT gets the model of the seed with the best development figure. `notice` receives the progress.
    """
    execution = execution or Execution()
    if not seeds or len(set(seeds)) < len(seeds):
        raise ConfigError(f"seeds {list(seeds)}: give one or more, each once")
    jobs = {
        seed: replace(
            job,
            recipe=changed(job.recipe, {"run.seed": seed}),
            out=job.folder / "seeds" / str(seed),
        )
        for seed in seeds
    }
    with held(job.folder, execution):
        return run_all("seeds", job, jobs, execution=execution, watch=watch, notice=notice)


def finetune_folds(
    job: FinetuneJob,
    folds: int,
    *,
    group: str | None = None,
    execution: Execution | None = None,
    watch: Watcher | None = None,
    notice: Notice = log.info,
) -> RepeatedRuns:
    """Fine-tune once for each fold of the training rows, in OUT/folds/N; finished ones stay.

    In each run one fold is held out, and the development rows choose the best weights, so that
    nothing of the held-out rows reaches its model. Their predictions go, in the order of the
    training rows, into predictions.folds.jsonl; `whole` are the figures of all of them together.
    OUT gets the model of the fold with the best development figure.
    """
    execution = execution or Execution()
    whose = fold_numbers(job.train, folds, seed=job.recipe.run.seed, group=group)
    # Labels may be so rare that a fold holds all of their rows; a scale is not learned from those.
    known = task_kind(job.task).known(job.train)
    jobs = {
        number: replace(
            job,
            train=[row for row, fold in zip(job.train, whose, strict=True) if fold != number],
            known=known,
            out=job.folder / "folds" / str(number),
        )
        for number in range(folds)
    }
    with held(job.folder, execution):
        many = run_all("folds", job, jobs, execution=execution, watch=watch, notice=notice)
        if many.best is None:
            return many
        return _with_rows(many, job, whose, execution)


def _with_rows(
    many: RepeatedRuns, job: FinetuneJob, whose: Sequence[int], execution: Execution
) -> RepeatedRuns:
    """The figures of the held-out rows: of each fold, and of all together."""
    held_out: dict[int, Prediction] = {}
    members = []
    for member in many.members:
        predictor = load_predictor(member.folder, device=str(execution.device))
        numbers = [n for n, fold in enumerate(whose) if fold == member.number]
        rows = [job.train[n] for n in numbers]
        predicted = [one for _, one in predictor.stream(rows)]
        members.append(
            RepeatedRun(
                number=member.number,
                folder=member.folder,
                figures=score(predictor.task, rows, predicted),
            )
        )
        held_out |= dict(zip(numbers, predicted, strict=True))
    every = [held_out[n] for n in range(len(job.train))]
    task = predictor.task
    on_first(execution.ranks, lambda: _write(job.folder / PREDICTIONS, job.train, whose, every))
    best = next(one for one in members if many.best and one.number == many.best.number)
    whole = score(task, job.train, every)
    return replace(many, members=tuple(members), best=best, whole=whole)


def _write(
    path: Path, rows: Sequence[Example], whose: Sequence[int], predicted: Sequence[Prediction]
) -> None:
    def lines() -> Iterator[str]:
        for row, fold, one in zip(rows, whose, predicted, strict=True):
            origin = {"source": row.source, "line": row.line, "id": row.id, "fold": fold}
            yield json.dumps({**origin, **one.to_json()}, ensure_ascii=False) + "\n"

    write_staged(path, "".join(lines()).encode("utf-8", "surrogatepass"))
