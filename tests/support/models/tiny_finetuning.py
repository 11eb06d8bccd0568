"""A tiny model folder and rows it can learn in seconds, for tests of fine-tuning."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import torch
from tiny_models import randomized, shrunk
from tiny_tasks import SPECIAL, TASK_WORDS, row, word_tokenizer

from bertsmith.folders.write import save_model
from bertsmith.labeled.example import (
    Answers,
    ChoiceIndex,
    Example,
    Label,
    LabelSet,
    ScoreTarget,
    Tagged,
    Target,
)
from bertsmith.models.build import build
from bertsmith.training.execution.execution import Execution
from bertsmith.training.kinds.labeled.learner import (
    FinetunedTask,
    FinetuneJob,
    finetune,
    labeled_learner,
)
from bertsmith.training.kinds.labeled.recipe import (
    EncoderSettings,
    FinetuneRecipe,
    PlanSettings,
)
from bertsmith.training.kinds.labeled.rows import LabeledRows
from bertsmith.training.learner import Trained
from bertsmith.training.loop.progress import Progress, Watcher
from bertsmith.training.recipe import RatedOptimizer
from bertsmith.training.repeat.repeat import RepeatedRuns, train_seeds

RECIPE = FinetuneRecipe(
    plan=PlanSettings(epochs=6, batch=8),
    optimizer=RatedOptimizer(lr=3e-3),
    encoder=EncoderSettings(dropout=0.0),
)
SHORT = RECIPE.model_copy(update={"plan": PlanSettings(epochs=1, batch=8)})


def tiny_folder(path: Path, heads: int = 2) -> str:
    """A model folder that knows a dozen words, untrained; with one head, the native kernel fits."""
    words = len(SPECIAL) + len(TASK_WORDS)
    spec = shrunk("bert", vocab_size=words, hidden=32, heads=heads, rows=64)
    model = build("bert", spec, generator=torch.Generator().manual_seed(1))
    save_model(model, word_tokenizer(), path)
    return str(path)


def tiny_writer(path: Path) -> str:
    """A folder of a causal model that knows the same words, every weight random."""
    words = len(SPECIAL) + len(TASK_WORDS)
    spec = shrunk("bert", vocab_size=words, hidden=32, heads=2, rows=64)
    model = randomized(build("bert", replace(spec, sees="before"), heads=["masked_lm"]))
    save_model(model, word_tokenizer(), path)
    return str(path)


def has_bird(words: list[str]) -> Label:
    return Label("yes" if "bird" in words or "tree" in words else "no")


def marked_birds(words: list[str]) -> Tagged:
    text = " ".join(words)
    starts = [len(" ".join(words[:n])) + bool(n) for n in range(len(words))]
    units = tuple((at, at + len(word)) for at, word in zip(starts, words, strict=True))
    assert all(text[a:b] == word for (a, b), word in zip(units, words, strict=True))
    return Tagged(units, tuple("B-bird" if word == "bird" else "O" for word in words))


def bird_place(words: list[str]) -> Answers:
    text = " ".join(words)
    return Answers((("bird", text.index("bird")),) if "bird" in words else ())


TARGETS: dict[str, Callable[[list[str]], Target]] = {
    "classify": has_bird,
    "multilabel": lambda words: LabelSet(tuple(n for n in ("bird", "tree") if n in words)),
    "regress": lambda words: ScoreTarget(10.0 * words.count("bird") + len(words)),
    "tag": marked_birds,
    "answer": bird_place,
    "choose": lambda words: ChoiceIndex(len(words) % 2),
}


def rows(count: int, task: str = "classify", seed: int = 0) -> list[Example]:
    """Texts of a few words; none is told twice within a few hundred."""
    rng = random.Random(seed)
    found = []
    for number in range(count):
        words = rng.choices(TASK_WORDS, k=rng.randint(3, 9))
        texts = [" ".join(words)]
        if task == "answer":
            texts.insert(0, "bird")
        if task == "choose":
            texts += ["blue bird", "green stone"][:: -1 if len(words) % 2 else 1]
        found.append(row(number, texts, TARGETS[task](words)))
    return found


def tiny_job(source: str, out: Path | None, task: str = "classify", **changes: Any) -> FinetuneJob:
    """A job; changes of its rows (train, dev, known ...) are named like those of the job."""
    made = FinetuneJob(
        recipe=RECIPE,
        task=task,
        model=source,
        rows=LabeledRows(train=rows(160, task), dev=rows(60, task, seed=1)),
        out=out,
    )
    of_rows = {
        one.name: changes.pop(one.name) for one in fields(LabeledRows) if one.name in changes
    }
    return replace(made, rows=replace(made.rows, **of_rows), **changes)


class StopAt:
    """Watches a run and asks it to stop after a step, as a signal would."""

    def __init__(self, step: int) -> None:
        self.received: str | None = None
        self._step = step

    def __call__(self, look: Progress) -> None:
        if look.step == self._step:
            self.received = "SIGTERM"


def finetune_until(step: int, job: FinetuneJob) -> Trained[FinetunedTask]:
    """The run up to a step, where it is stopped."""
    stop = StopAt(step)
    return finetune(job, execution=Execution(stop=stop), watch=stop)


def finetune_seeds(
    job: FinetuneJob,
    seeds: Sequence[int],
    *,
    execution: Execution | None = None,
    watch: Watcher | None = None,
) -> RepeatedRuns[FinetunedTask]:
    """A run with each seed, as a request for several makes them."""
    learner = labeled_learner(cache={})
    return train_seeds(learner, job, seeds, execution=execution, watch=watch)


def weights(out: Path) -> dict[str, bytes]:
    """All that was learned, file by file."""
    return {path.name: path.read_bytes() for path in sorted(out.glob("*.safetensors"))}


def straight_and_cut(
    source: str, path: Path, recipe: FinetuneRecipe = RECIPE
) -> Trained[FinetunedTask]:
    """A run in one go, in `path`/straight; the same run cut in two ends with the same weights."""
    done = finetune(tiny_job(source, path / "straight", recipe=recipe))
    stopped = finetune_until(45, tiny_job(source, path / "cut", recipe=recipe))
    assert (stopped.outcome.status, stopped.finished) == ("stopped", None)
    finetune(tiny_job(source, path / "cut", recipe=recipe))
    assert "model.safetensors" in weights(path / "cut")
    assert weights(path / "cut") == weights(path / "straight")
    return done


def finetuned_folder(path: Path, recipe: FinetuneRecipe = RECIPE) -> Path:
    """A folder that says whether a text has a bird or a tree in it."""
    source = tiny_folder(path.with_name(path.name + "-source"))
    labeled = rows(160)
    finetune(tiny_job(source, path, recipe=recipe, train=labeled, dev=labeled[:40]))
    return path
