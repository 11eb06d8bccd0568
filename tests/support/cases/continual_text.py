"""Small English and Chinese documents with capitals, repeated words and discourse markers."""

from __future__ import annotations

from pathlib import Path

from bertsmith.corpus.build import build_corpus
from bertsmith.corpus.examples import ChosenDocuments, InputSettings
from bertsmith.corpus.rows import RowsBatch
from bertsmith.corpus.shards import Corpus, open_corpus
from bertsmith.text.learn import learn_vocabulary
from bertsmith.training.pretrain.recipe import PretrainRecipe, load_recipe

ENGLISH = [
    [
        "Anna met Bob in Paris.",
        "However, they did not talk.",
        "He left, because Anna was late.",
        "Then she cried.",
    ],
    [
        "The dog ate 12 apples, but the cat slept.",
        "So the dog was ill.",
        "In fact it was very ill!",
        "Butter was cheap in Rome.",
        "The cat ate it, so it slept again.",
    ],
    ["Rome is old.", "For example, its walls are old.", "Paris is old, too."],
    [
        "Bob likes Rome.",
        "He went there by train.",
        "Moreover the train was cheap, although it was late.",
        "Anna stayed.",
        "She read the whole day.",
        "But Bob came back soon.",
    ],
]
CHINESE = [
    ["老师喜欢北京。", "但是学生喜欢音乐，因为音乐很好。", "老师知道。", "然后学生回家。"],
    ["医生看见朋友。", "因此朋友很高兴。", "他们去图书馆，例如看书。"],
    ["苹果很好。", "而且苹果不贵，所以学生喜欢苹果。", "老师也喜欢。"],
]


def continual_corpus(
    place: Path, documents: list[list[str]], *, kind: str = "wordpiece", copies: int = 1
) -> Corpus:
    """A corpus of these documents, so many times over."""
    place.mkdir(parents=True, exist_ok=True)
    texts = ["\n".join(lines) for lines in documents] * copies
    (place / "text.txt").write_text("\n\n".join(texts) + "\n", encoding="utf-8")
    tokenizer = learn_vocabulary(texts, kind=kind, size=300, min_count=1)
    build_corpus([place / "text.txt"], tokenizer, place / "shards", workers=1)
    return open_corpus(place / "shards")


def chosen_of(corpus: Corpus, max_length: int = 32, **more: object) -> ChosenDocuments:
    """All documents of a corpus."""
    documents = list(range(len(corpus.documents) - 1))
    inputs = InputSettings(kind="full_sentences", max_length=max_length)
    values = {"corpus": corpus, "documents": documents, "inputs": inputs, "seed": 3, **more}
    return ChosenDocuments(**values)  # type: ignore[arg-type]


def parts_of(rows: RowsBatch, text: int) -> list[list[int]]:
    """The places in the corpus of each part of a text, special tokens between them."""
    start = int(rows.starts[text])
    parts: list[list[int]] = [[]]
    for origin in rows.origins[start : start + rows.lengths[text]].tolist():
        if origin >= 0:
            parts[-1].append(origin)
        elif parts[-1]:
            parts.append([])
    return parts[:-1] if not parts[-1] else parts


def spelled(corpus: Corpus, places: list[int]) -> str:
    """The tokens at these places as one string without spaces."""
    tokenizer = corpus.tokenizer()
    names = [tokenizer.id_to_token(int(corpus.tokens[place])) or "" for place in places]
    return "".join(name.removeprefix("##").replace("Ġ", "") for name in names)


def short_ernie(*more: str, steps: int = 20) -> PretrainRecipe:
    """The recipe of ERNIE 2.0, small enough to watch."""
    return load_recipe(
        "ernie2",
        [
            "model.size=tiny",
            f"schedule.steps={steps}",
            "schedule.warmup=0.1",
            "batch.sequences=14",
            "batch.micro_tokens=512",
            "input.max_length=32",
            "eval={held_out=0.3, every=100}",
            "log={every=1, tensorboard=false}",
            "run.precision=fp32",
            *more,
        ],
    )
