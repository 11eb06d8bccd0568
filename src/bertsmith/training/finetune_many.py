"""One fine-tuning job several times: with several seeds, or with each part of the rows held out."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from bertsmith.errors import ConfigError
from bertsmith.files.atomic_file import write_staged
from bertsmith.labeled.example import Example
from bertsmith.labeled.split.folds import fold_numbers
from bertsmith.runtime.predictor import load_predictor
from bertsmith.tasks.prediction import Prediction
from bertsmith.tasks.task import score
from bertsmith.training.agreement import on_first
from bertsmith.training.finetune import FinetuneJob
from bertsmith.training.finetune_recipe import FinetuneRecipe
from bertsmith.training.finetune_runs import Many, Member, Notice, held, run_all
from bertsmith.training.place import Place
from bertsmith.training.progress import Watcher

log = logging.getLogger(__name__)

PREDICTIONS = "predictions.folds.jsonl"


def finetune_seeds(
    job: FinetuneJob,
    seeds: Sequence[int],
    *,
    place: Place | None = None,
    watch: Watcher | None = None,
    notice: Notice = log.info,
) -> Many:
    """Fine-tune with each seed, in OUT/seeds/SEED; finished runs are not repeated.

    OUT gets the model of the seed with the best development figure. `notice` is told what begins.
    """
    place = place or Place()
    if not seeds or len(set(seeds)) < len(seeds):
        raise ConfigError(f"seeds {list(seeds)}: give one or more, each once")
    jobs = {
        seed: replace(
            job,
            recipe=_with_seed(job.recipe, seed),
            out=job.out / "seeds" / str(seed),
        )
        for seed in seeds
    }
    with held(job.out, place):
        return run_all("seeds", job, jobs, place=place, watch=watch, notice=notice)


def finetune_folds(
    job: FinetuneJob,
    folds: int,
    *,
    group: str | None = None,
    place: Place | None = None,
    watch: Watcher | None = None,
    notice: Notice = log.info,
) -> Many:
    """Fine-tune once for each fold of the training rows, in OUT/folds/N; finished ones stay.

    In each run one fold is held out, and the development rows choose the best weights, so that
    nothing of the held-out rows reaches its model. What is said of them goes, in the order of the
    training rows, into predictions.folds.jsonl; `whole` are the figures of all of them together.
    OUT gets the model of the fold with the best development figure.
    """
    place = place or Place()
    whose = fold_numbers(job.train, folds, seed=job.recipe.run.seed, group=group)
    # Labels may be so rare that a fold holds all of their rows; a scale is not learned from those.
    known = () if job.task == "regress" else job.train
    jobs = {
        number: replace(
            job,
            train=[row for row, fold in zip(job.train, whose, strict=True) if fold != number],
            known=known,
            out=job.out / "folds" / str(number),
        )
        for number in range(folds)
    }
    with held(job.out, place):
        many = run_all("folds", job, jobs, place=place, watch=watch, notice=notice)
        if many.best is None:
            return many
        return _with_rows(many, job, whose, place)


def _with_seed(recipe: FinetuneRecipe, seed: int) -> FinetuneRecipe:
    """A recipe with another seed."""
    return recipe.model_copy(update={"run": recipe.run.model_copy(update={"seed": seed})})


def _with_rows(many: Many, job: FinetuneJob, whose: Sequence[int], place: Place) -> Many:
    """The figures of the held-out rows: of each fold, and of all together."""
    found: dict[int, Prediction] = {}
    members = []
    for member in many.members:
        predictor = load_predictor(member.folder, device=str(place.device))
        numbers = [n for n, fold in enumerate(whose) if fold == member.number]
        rows = [job.train[n] for n in numbers]
        said = [one for _, one in predictor.stream(rows)]
        members.append(
            Member(
                number=member.number,
                folder=member.folder,
                figures=score(predictor.task, rows, said),
            )
        )
        found |= dict(zip(numbers, said, strict=True))
    said = [found[n] for n in range(len(job.train))]
    task = predictor.task
    on_first(place.ranks, lambda: _write(job.out / PREDICTIONS, job.train, whose, said))
    best = next(one for one in members if many.best and one.number == many.best.number)
    whole = score(task, job.train, said)
    return replace(many, members=tuple(members), best=best, whole=whole)


def _write(
    path: Path, rows: Sequence[Example], whose: Sequence[int], said: Sequence[Prediction]
) -> None:
    def lines() -> Iterator[str]:
        for row, fold, one in zip(rows, whose, said, strict=True):
            told = {"source": row.source, "line": row.line, "id": row.id, "fold": fold}
            yield json.dumps({**told, **one.to_json()}, ensure_ascii=False) + "\n"

    write_staged(path, "".join(lines()).encode("utf-8", "surrogatepass"))
