"""A tiny BERT of one's own from the standard library's documentation, in about a minute."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from bertsmith.corpus.build import build_corpus
from bertsmith.corpus.shards import Corpus, open_corpus
from bertsmith.corpus.sources import CorpusSettings
from bertsmith.labeled.spec import DataSpec
from bertsmith.report.curves import read_log
from bertsmith.runtime.generation.filling import FilledText, FillingOptions
from bertsmith.runtime.loading import load
from bertsmith.runtime.mask_filling import Filled
from bertsmith.text.learn import learn_vocabulary
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.training.execution.execution import choose_execution
from bertsmith.training.loop.progress import Watcher
from bertsmith.training.loop.run import Outcome
from bertsmith.training.pretrain.pretrain import Job, pretrain
from bertsmith.training.pretrain.recipe import PretrainRecipe, load_recipe

VOCABULARY = 4096
HELD_OUT = 0.03
QUESTIONS = 3  # hidden words
BARS = "▁▂▃▄▅▆▇█"
FEWEST, MOST = 7, 18  # tokens of a sentence
PROSE = 0.8  # of the tokens are letters: a sentence, no grammar or code
SHORTEST = 4  # letters of a word worth hiding


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """The shards of a corpus and how much text is in them."""

    shards: Path
    documents: int
    tokens: int
    vocabulary: int


def prepare(texts: Sequence[str], passages: Path, out: Path) -> Material:
    """A vocabulary and shards from passages, which are also in a .jsonl file."""
    shards = out / "shards"
    shutil.rmtree(shards, ignore_errors=True)  # another Python may have other passages
    tokenizer = learn_vocabulary(texts, kind="wordpiece", size=VOCABULARY)
    report = build_corpus(
        [passages], tokenizer, shards, CorpusSettings(reading=DataSpec(text=("text",)))
    )
    return Material(
        shards=shards,
        documents=report.documents,
        tokens=report.tokens,
        vocabulary=tokenizer.vocab_size,
    )


def recipe(seconds: float) -> PretrainRecipe:
    """The recipe `fast`, made small enough for a minute."""
    return load_recipe(
        "fast",
        [
            "model.size=tiny",
            f"schedule.budget={seconds}",
            "stages=[]",
            "input.max_length=128",
            "batch.tokens=2048",
            "batch.micro_tokens=4096",
            f"eval.held_out={HELD_OUT}",
            "eval.every=1000000",
            "log={every=2, tensorboard=false}",
            "run.precision=fp32",
        ],
    )


def train(material: Material, out: Path, seconds: float, watch: Watcher | None = None) -> Outcome:
    """A fresh run of so many seconds; the model is saved in `out`."""
    shutil.rmtree(out, ignore_errors=True)
    settings = recipe(seconds)
    job = Job(recipe=settings, corpus=material.shards, out=out)
    return pretrain(job, execution=choose_execution(settings.run, out), watch=watch)


def fill_hidden(
    folder: Path, material: Material, *, count: int = QUESTIONS, top: int = 4
) -> list[tuple[HiddenWord, Filled]]:
    """What the model puts in place of words of sentences that it was not trained on."""
    model = load(folder, precision="fp32").masked
    seed = recipe(1.0).run.seed
    words = hidden_words(material.shards, held_out=HELD_OUT, seed=seed, count=count)
    return [(word, model.fill(word.text, top=top)) for word in words]


def write_sentence(folder: Path) -> FilledText:
    """A sentence that the model writes by filling; with more steps it reads better."""
    options = FillingOptions(start="return the", length=10, steps=200, top_k=20)
    (text,) = load(folder, precision="fp32").sample_by_filling(options)
    return text


def curve(folder: Path, width: int = 60) -> str:
    """The training loss of a run as a line of bars between its first and last value."""
    rows = read_log(folder / "log.jsonl")
    values = [float(row["losses"]["mlm"]) for row in rows if row.get("kind") == "train"]
    return sparkline(values, width)


def sparkline(values: Sequence[float], width: int) -> str:
    """Values as bars, means of neighbors where there are more than `width`."""
    if not values:
        return ""
    count = min(width, len(values))
    edges = [len(values) * place // count for place in range(count + 1)]
    means = [sum(values[a:b]) / (b - a) for a, b in itertools.pairwise(edges)]
    low, high = min(means), max(means)
    scale = (len(BARS) - 1) / (high - low) if high > low else 0.0
    bars = "".join(BARS[round((mean - low) * scale)] for mean in means)
    return f"{values[0]:.2f} {bars} {values[-1]:.2f}"


@dataclass(frozen=True, slots=True)
class HiddenWord:
    """A sentence with one word hidden, and the word."""

    text: str
    word: str


def hidden_words(shards: Path, *, held_out: float, seed: int, count: int) -> list[HiddenWord]:
    """From each of the first held-out documents that has one: the longest word of a sentence.

    The first sentence of fitting length counts, and words that are one token of letters alone.
    """
    corpus = open_corpus(shards)
    _, documents = corpus.split(held_out, seed)
    tokenizer = corpus.tokenizer()
    words = (_first(corpus, tokenizer, int(document)) for document in documents)
    return list(islice((word for word in words if word is not None), count))


def _first(corpus: Corpus, tokenizer: Tokenizer, document: int) -> HiddenWord | None:
    for ids in _sentences(corpus, document):
        if not FEWEST <= len(ids) <= MOST:
            continue
        tokens = [tokenizer.id_to_token(int(number)) or "" for number in ids]
        letters = sum(token.removeprefix("##").isalpha() for token in tokens)
        if letters < PROSE * len(tokens):
            continue
        whole = [
            place
            for place, token in enumerate(tokens)
            if token.isalpha()
            and len(token) >= SHORTEST
            and not (tokens[place + 1 : place + 2] or [""])[0].startswith("##")
        ]
        if whole:
            place = max(whole, key=lambda one: (len(tokens[one]), -one))
            before, after = tokenizer.decode(ids[:place]), tokenizer.decode(ids[place + 1 :])
            mask = tokenizer.id_to_token(tokenizer.special.mask or 0)
            return HiddenWord(f"{before} {mask} {after}".strip(), tokens[place])
    return None


def _sentences(corpus: Corpus, document: int) -> Iterator[np.ndarray]:
    first, end = corpus.documents[document], corpus.documents[document + 1]
    for sentence in range(int(first), int(end)):
        yield np.asarray(corpus.tokens[corpus.sentences[sentence] : corpus.sentences[sentence + 1]])
