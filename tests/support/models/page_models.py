"""Tiny models that read English and Chinese, one for each thing a service can do with a text."""

from __future__ import annotations

import random
import string
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch
from tiny_correction import corrector_folder
from tiny_finetuning import RECIPE, SHORT, tiny_job
from tiny_models import randomized, shrunk
from tiny_tasks import SPECIAL, TASK_WORDS, row, word_tokenizer

import bertsmith
from bertsmith.folders.write import save_model
from bertsmith.labeled.example import Answers, ChoiceIndex, Example, Label, Tagged, Target
from bertsmith.models.build import build
from bertsmith.models.spec import Seen
from bertsmith.training.kinds.labeled.learner import finetune

SIGNS = "红绿蓝圆方大小石河树鸟屋今天气很好北京是中国的首都小猫坐在垫子上因为它累了"
WORDS = [
    *TASK_WORDS,
    *("the", "cat", "sat", "on", "mat", "because", "it", "was", "tired", "of", "is"),
    *string.ascii_lowercase,
    *(f"##{letter}" for letter in string.ascii_lowercase),
    *dict.fromkeys(SIGNS),
    *".,?!:;'<>&/=，。？",
]
CHINESE = list("红绿蓝圆方大小石河树鸟屋")
POSITIONS = 160
TASKS = {"classifier": "classify", "tagger": "tag", "answerer": "answer", "chooser": "choose"}


class TaskFolders(NamedTuple):
    """Folders by name, and an index of the first."""

    models: dict[str, Path]
    index: Path


def page_models(place: Path) -> dict[str, Path]:
    """Folders by name: one that fills masks, one that writes, and one per fine-tuned task.

    The one that corrects is not trained.
    """
    source = _folder(place / "source")
    writer = _folder(place / "writer", sees="before", drawn=True)
    made = {"masked": source, "writer": writer}
    for name, task in TASKS.items():
        job = tiny_job(
            str(source),
            place / name,
            task,
            recipe=RECIPE if task == "tag" else SHORT,
            train=_rows(160, task),
            dev=_rows(40, task, seed=1),
        )
        finetune(job)
        made[name] = place / name
    drawn = _folder(place / "drawn", drawn=True)
    return made | {"corrector": corrector_folder(place / "corrector", drawn)}


def page_index(place: Path, model: Path) -> Path:
    """An index of a few rows in both languages."""
    rows = place / "rows.tsv"
    texts = ["the red bird", "a large house", "the green tree", "红鸟", "大屋", "绿树"]
    rows.write_text("text\tkind\n" + "".join(f"{text}\ttoy\n" for text in texts), encoding="utf-8")
    bertsmith.build_index(rows, str(model), place / "index")
    return place / "index"


def _folder(path: Path, *, sees: Seen = "all", drawn: bool = False) -> Path:
    tokenizer = word_tokenizer(WORDS)
    words = len(SPECIAL) + len(WORDS)
    spec = shrunk("bert", vocab_size=words, hidden=32, heads=4, rows=POSITIONS)
    model = build(
        "bert",
        replace(spec, sees=sees),
        heads=["masked_lm"],
        generator=torch.Generator().manual_seed(1),
    )
    save_model(randomized(model) if drawn else model, tokenizer, path)
    return path


def _rows(count: int, task: str, seed: int = 0) -> list[Example]:
    rng = random.Random(seed)
    found = []
    for number in range(count):
        known, space, bird = (CHINESE, "", "鸟") if number % 2 else (TASK_WORDS, " ", "bird")
        words = rng.choices(known, k=rng.randint(3, 9))
        texts = [bird] if task == "answer" else []
        choices = [bird, known[0]][:: 1 if bird in words else -1] if task == "choose" else []
        texts += [space.join(words), *choices]
        found.append(row(number, texts, _target(task, words, space, bird)))
    return found


def _target(task: str, words: Sequence[str], space: str, bird: str) -> Target:
    text = space.join(words)
    if task == "classify":
        return Label("yes" if bird in words else "no")
    if task == "answer":
        return Answers(((bird, text.index(bird)),) if bird in words else ())
    if task == "choose":
        return ChoiceIndex(0)
    starts = [len(space.join(words[:n])) + (len(space) if n else 0) for n in range(len(words))]
    units = tuple((at, at + len(word)) for at, word in zip(starts, words, strict=True))
    return Tagged(units, tuple("B-bird" if word == bird else "O" for word in words))
