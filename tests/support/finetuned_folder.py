"""A tiny fine-tuned folder, and rows for it: made in a second, by the library itself."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import torch
from tiny_models import shrunk
from tiny_tasks import SPECIAL, TASK_WORDS, row, word_tokenizer

from bertsmith.data.examples.example import Example, Label, Target
from bertsmith.folders.write import save_model
from bertsmith.models.build import build
from bertsmith.training.finetune import FinetuneJob, finetune
from bertsmith.training.finetune_recipe import EncoderSettings, FinetuneRecipe, PlanSettings
from bertsmith.training.optimizers import AdamWSettings

RECIPE = FinetuneRecipe(
    plan=PlanSettings(epochs=4, batch=8),
    optimizer=AdamWSettings(lr=3e-3),
    encoder=EncoderSettings(dropout=0.0),
)


def source_folder(path: Path) -> Path:
    """A model folder that knows a dozen words and no task."""
    spec = shrunk("bert", vocab_size=len(SPECIAL) + len(TASK_WORDS), hidden=32, heads=2, rows=64)
    model = build("bert", spec, generator=torch.Generator().manual_seed(1))
    save_model(model, word_tokenizer(), path)
    return path


def has_bird(words: list[str]) -> Label:
    return Label("yes" if "bird" in words or "tree" in words else "no")


def word_rows(
    count: int, target: Callable[[list[str]], Target] = has_bird, *, seed: int = 0
) -> list[Example]:
    """Rows of known words whose target follows from them."""
    rng = random.Random(seed)
    drawn = [rng.choices(TASK_WORDS, k=rng.randint(3, 9)) for _ in range(count)]
    return [row(number, [" ".join(words)], target(words)) for number, words in enumerate(drawn)]


def finetuned_folder(path: Path, task: str = "classify", rows: list[Example] | None = None) -> Path:
    """A folder that says whether a text has a bird or a tree in it."""
    source = source_folder(path.with_name(path.name + "-source"))
    labeled = rows or word_rows(160)
    finetune(
        FinetuneJob(
            recipe=RECIPE,
            task=task,
            model=str(source),
            train=labeled,
            dev=labeled[:40],
            out=path,
        )
    )
    return path
