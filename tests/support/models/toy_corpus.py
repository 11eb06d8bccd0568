"""A small corpus with something to learn, in English or Chinese, and short recipes for it."""

from __future__ import annotations

import atexit
import random
import shutil
import tempfile
from functools import cache
from pathlib import Path

from bertsmith.corpus.build import build_corpus
from bertsmith.text.learn import learn_vocabulary
from bertsmith.training.pretrain.recipe import PretrainRecipe, load_recipe

WHO = "the man,a dog,my sister,the old teacher,your neighbor,the small cat".split(",")  # noqa: SIM905
DID = "went to,looked at,walked around,painted,remembered,ran past".split(",")  # noqa: SIM905
WHAT = "the store,a river,the green house,an apple,the long street,the museum".split(",")  # noqa: SIM905
ZH = [
    ["老师", "学生", "医生", "朋友"],
    ["喜欢", "看见", "知道"],
    ["北京", "苹果", "图书馆", "音乐"],
]


def documents(count: int = 60, *, chinese: bool = False, seed: int = 5) -> list[str]:
    rng = random.Random(seed)
    found = []
    for _ in range(count):
        table, gap, end = (ZH, "", "。") if chinese else ([WHO, DID, WHAT], " ", ".")
        lines = [
            gap.join(rng.choice(column) for column in table) + end
            for _ in range(rng.randint(6, 14))
        ]
        found.append("\n".join(lines))
    return found


def toy_corpus(
    place: Path, *, kind: str = "wordpiece", chinese: bool = False, size: int = 220
) -> Path:
    texts = documents(chinese=chinese)
    place.mkdir(parents=True, exist_ok=True)
    (place / "text.txt").write_text("\n\n".join(texts) + "\n", encoding="utf-8")
    tokenizer = learn_vocabulary(texts, kind=kind, size=size, min_count=1)
    build_corpus([place / "text.txt"], tokenizer, place / "shards", workers=1)
    return place / "shards"


@cache
def entity_file() -> Path:
    """A list of entities of the English texts: people, places, and one animal alone."""
    place = Path(tempfile.mkdtemp(prefix="toy-entities-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    typed = {"person": ["the man", "my sister", "the old teacher", "your neighbor"]}
    typed |= {"place": [name for name in WHAT if name != "an apple"], "animal": ["a dog"]}
    lines = [f"{name}\t{kind}\n" for kind, names in typed.items() for name in names]
    (place / "entities.tsv").write_text("".join(lines), encoding="utf-8")
    return place / "entities.tsv"


def needed_settings(name: str) -> list[str]:
    """Settings that a shipped recipe cannot run without."""
    if name == "wklm":
        return [f"program.entities={entity_file()}", "program.aligned=0.5"]
    return []


def short_recipe(name: str, *more: str, steps: int = 20) -> PretrainRecipe:
    """A shipped recipe, small enough to watch; every other setting is its own."""
    return load_recipe(
        name,
        [
            "model.size=tiny",
            f"schedule.steps={steps}",
            "schedule.warmup=0.1",
            "batch.tokens=1024",
            "batch.micro_tokens=512",
            "eval.held_out=0.1",
            "log={every=5, tensorboard=false}",
            *more,
        ],
    )
