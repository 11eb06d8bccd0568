"""Several seeds and folds: nothing is done twice, the best is kept, no row judges its own model."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from tiny_finetuning import SHORT, StopAt, finetune_seeds, rows, tiny_job

from bertsmith.errors import ConfigError
from bertsmith.folders.runs import FIGURES
from bertsmith.labeled.example import Example, Label
from bertsmith.labeled.split.stratify import fold_numbers
from bertsmith.metrics.significance import over_seeds
from bertsmith.runtime.load_predictor import load_predictor
from bertsmith.tasks.task import score
from bertsmith.training.execution.execution import Execution
from bertsmith.training.kinds.labeled.folds import PREDICTIONS, finetune_folds
from bertsmith.training.kinds.labeled.learner import FinetuneJob
from bertsmith.training.kinds.labeled.recipe import PlanSettings
from bertsmith.training.loop.progress import Progress
from bertsmith.training.repeat import repeat
from bertsmith.training.repeat.repeat import CHOSEN

SHORTER = SHORT.model_copy(update={"plan": PlanSettings(epochs=1, batch=16)})


def job(source: str, out: Path, **changes: object) -> FinetuneJob:
    given = {"recipe": SHORTER, "train": rows(64), "dev": rows(40, seed=1), **changes}
    return tiny_job(source, out, **given)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders that fine-tuning was called for, in order."""
    calls: list[str] = []
    plain = repeat.run_job

    def watched(learner: object, job: FinetuneJob, **given: object) -> object:
        calls.append(job.out.name)
        return plain(learner, job, **given)

    monkeypatch.setattr(repeat, "run_job", watched)
    return calls


def test_the_folder_holds_the_best_seed_and_the_interval_is_students(
    source: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    many = finetune_seeds(job(source, out), [0, 1, 2])
    assert [one.number for one in many.members] == [0, 1, 2]
    values = [one.figures["accuracy"] for one in many.members]
    assert many.best is not None
    assert many.best.figures["accuracy"] == max(values)
    chosen = out / "seeds" / str(many.best.number)
    for name in ("model.safetensors", "bertsmith.json"):
        assert (out / name).read_bytes() == (chosen / name).read_bytes()
    others = [one for one in many.members if one is not many.best]
    assert all(
        (one.folder / "model.safetensors").read_bytes() != (out / "model.safetensors").read_bytes()
        for one in others
    )
    told = many.to_json()
    assert [one["seed"] for one in told["seeds"]] == [0, 1, 2]
    spread = over_seeds(values)
    assert told["interval"]["accuracy"]["mean"] == pytest.approx(spread.mean)
    assert told["interval"]["accuracy"]["low"] == pytest.approx(spread.low)
    assert told["chosen"] == many.best.number
    assert json.loads((out / CHOSEN).read_text())["from"] == f"seeds/{many.best.number}"
    json.dumps(told, allow_nan=False)
    assert many.outcome.status == "finished"


def test_finished_seeds_are_not_repeated_and_one_that_was_stopped_goes_on(
    source: str, tmp_path: Path, counted: list[str]
) -> None:
    out = tmp_path / "out"

    stop = StopAt(-1)

    def watch(look: Progress) -> None:
        if counted == ["0", "1"] and look.step == 2:
            stop.received = "SIGTERM"

    cut = finetune_seeds(job(source, out), [0, 1], execution=Execution(stop=stop), watch=watch)
    assert cut.outcome.status == "stopped"
    assert cut.best is None
    assert not (out / "config.json").exists()
    whole = finetune_seeds(job(source, out), [0, 1])
    assert counted[:3] == ["0", "1", "1"]
    assert len(whole.members) == 2
    straight = finetune_seeds(job(source, tmp_path / "straight"), [0, 1])
    assert [one.figures for one in straight.members] == [one.figures for one in whole.members]
    for name in ("model.safetensors", "bertsmith.json"):
        assert (out / name).read_bytes() == (tmp_path / "straight" / name).read_bytes()
    counted.clear()
    more = finetune_seeds(job(source, out), [0, 1, 2])
    assert counted[0] == "2"
    assert set(counted[1:]) <= {str(more.best.number)}  # its model is read again, not trained
    assert len(more.members) == 3


def test_a_finished_seed_of_other_settings_is_refused(source: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    finetune_seeds(job(source, out), [0])
    changed = SHORTER.model_copy(update={"plan": PlanSettings(epochs=1, batch=8)})
    with pytest.raises(ConfigError, match=r"plan\.batch was 16 and is 8"):
        finetune_seeds(job(source, out, recipe=changed), [0])


@pytest.mark.parametrize("seeds", [[], [1, 1]])
def test_seeds_are_given_once_each(source: str, tmp_path: Path, seeds: list[int]) -> None:
    with pytest.raises(ConfigError, match="each once"):
        finetune_seeds(job(source, tmp_path), seeds)


def test_damaged_figures_are_made_again(source: str, tmp_path: Path, counted: list[str]) -> None:
    out = tmp_path / "out"
    first = finetune_seeds(job(source, out), [4])
    (out / "seeds" / "4" / FIGURES).write_text("{")
    counted.clear()
    again = finetune_seeds(job(source, out), [4])
    assert counted == ["4"]
    assert again.members[0].figures == first.members[0].figures


def test_every_row_is_judged_by_a_model_that_never_saw_it(source: str, tmp_path: Path) -> None:
    what = job(source, tmp_path / "out")
    many = finetune_folds(what, 3)
    told = [json.loads(line) for line in (what.out / PREDICTIONS).read_text().splitlines()]
    assert [one["id"] for one in told] == [row.id for row in what.rows.train]
    whose = fold_numbers(what.rows.train, 3, seed=what.recipe.run.seed)
    assert [one["fold"] for one in told] == whose
    for number in range(3):
        held = [n for n, fold in enumerate(whose) if fold == number]
        said = load_predictor(what.out / "folds" / str(number)).predict(
            [what.rows.train[n].texts for n in held]
        )
        assert [one.value for one in said] == [told[n]["prediction"] for n in held]
        figures = many.members[number].figures
        assert figures["accuracy"] == pytest.approx(
            sum(
                one.value == what.rows.train[n].target.name
                for one, n in zip(said, held, strict=True)
            )
            / len(held)
        )
    right = sum(
        one["prediction"] == row.target.name for one, row in zip(told, what.rows.train, strict=True)
    )
    assert many.whole is not None
    assert many.whole["accuracy"] == pytest.approx(right / len(told))
    assert many.to_json()["folds"]["count"] == 3
    assert (what.out / "config.json").exists()


def test_a_label_whose_rows_are_all_held_out_is_still_known(source: str, tmp_path: Path) -> None:
    odd = rows(1, seed=9)[0]
    rare = Example(source="rows.tsv", line=65, id="64", texts=odd.texts, target=Label("rare"))
    what = job(source, tmp_path / "out", train=[*rows(64), rare])
    many = finetune_folds(what, 2)
    assert load_predictor(many.members[0].folder).task.labels == ("no", "rare", "yes")
    assert many.whole is not None


def test_scores_are_not_scaled_by_rows_held_out(source: str, tmp_path: Path) -> None:
    what = job(
        source, tmp_path / "out", task="regress", train=rows(48, "regress"), dev=rows(24, "regress")
    )
    many = finetune_folds(what, 2)
    means = {load_predictor(one.folder).task.mean for one in many.members}
    assert len(means) == 2
    task = load_predictor(many.members[0].folder).task
    assert set(score(task, what.rows.dev, load_predictor(what.out).predict(what.rows.dev))) == set(
        many.whole or {}
    )


def test_folds_are_stratified_and_keep_groups_whole() -> None:
    examples = rows(203)
    whose = fold_numbers(examples, 5, seed=3)
    texts: dict[tuple[str, ...], set[int]] = {}
    for example, fold in zip(examples, whose, strict=True):
        texts.setdefault(example.texts, set()).add(fold)
    assert all(len(folds) == 1 for folds in texts.values())
    counts = Counter(
        (example.target.name, fold) for example, fold in zip(examples, whose, strict=True)
    )
    for label in ("yes", "no"):
        here = [counts[label, fold] for fold in range(5)]
        assert max(here) - min(here) <= 1 + (203 - len(texts))
    sizes = Counter(whose)
    assert max(sizes.values()) - min(sizes.values()) <= 1 + (203 - len(texts))
    assert fold_numbers(examples, 5, seed=3) == whose
    assert fold_numbers(examples, 5, seed=4) != whose


@pytest.mark.parametrize("folds", [0, 1, 41])
def test_a_number_of_folds_that_cannot_be_is_refused(folds: int) -> None:
    with pytest.raises(ConfigError, match="give a number of folds from 2 to 40"):
        fold_numbers(rows(40), folds)
