"""Similar sentences: written by a model that learned to, or found among texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bertsmith.errors import ConfigError, TextError
from bertsmith.folders.kinds import need
from bertsmith.folders.opened import OpenFolder
from bertsmith.runtime.generation.options import GenerationOptions
from bertsmith.runtime.loading import LoadedModel, load
from bertsmith.sentences.compare import Vectors
from bertsmith.training.kinds.write.record import WritingFolder
from bertsmith.training.kinds.write.written import shortened

CANDIDATES = 100  # texts that are written, of which the nearest are taken
TOP_K = 5  # tokens that each next one is drawn from


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarText:
    """A text and the cosine of its vector with that of the sentence."""

    text: str
    score: float


def similar_sentences(
    model: str | Path,
    sentence: str,
    *,
    count: int = 10,
    among: Iterable[str] | None = None,
    candidates: int = CANDIDATES,
    top_k: int = TOP_K,
    seed: int = 0,
    device: str = "cpu",
) -> list[SimilarText]:
    """Sentences similar to one, the nearest first: written, or found `among` texts.

    To write them, `candidates` are drawn from the `top_k` likeliest tokens of each step; the
    sentence itself and repetitions are left out. The model was trained by
    `finetune(..., spec=DataSpec(task="similar"))`; to find them, any model of vectors will do.
    """
    _check(sentence, count)
    if among is not None:
        with load(model, device=device, precision="fp32") as loaded:
            return nearest_texts(loaded, sentence, list(among), count)
    need(OpenFolder.at(model), "similar")
    folder = WritingFolder.at(model, device=device)
    texts = written_similar(folder, [sentence], candidates=candidates, top_k=top_k, seed=seed)[0]
    with load(model, device=device, precision="fp32") as loaded:
        return nearest_texts(loaded, sentence, texts, count)


def written_similar(
    folder: WritingFolder,
    sentences: Sequence[str],
    *,
    candidates: int = CANDIDATES,
    top_k: int = TOP_K,
    seed: int = 0,
) -> list[list[str]]:
    """Different texts for each sentence, the sentence itself and empty ones left out."""
    tokenizer = folder.loaded.tokenizer
    options = GenerationOptions(
        sample=True, top_k=top_k, answers=candidates, seed=seed, max_new=folder.lengths.target
    )
    sources = [shortened(tokenizer, text, folder.lengths.source) for text in sentences]
    found = folder.generator.generate(sources, options)
    every = []
    for sentence, generated in zip(sentences, found, strict=True):
        different = {_plain(one.text): one.text for one in reversed(generated.answers)}
        different.pop(_plain(sentence), None)
        different.pop("", None)
        every.append(list(reversed(different.values())))
    return every


def nearest_texts(
    model: LoadedModel, sentence: str, texts: Sequence[str], count: int
) -> list[SimilarText]:
    """The texts nearest to a sentence by the cosine of vectors."""
    if not texts:
        return []
    vectors = _unit(model.encode([sentence, *texts]))
    scores = vectors[1:] @ vectors[0]
    order = np.argsort(-scores, kind="stable")[:count]
    return [SimilarText(text=texts[at], score=float(scores[at])) for at in order.tolist()]


def _check(sentence: str, count: int) -> None:
    if not isinstance(sentence, str) or not sentence.strip():
        raise TextError("the sentence is empty; give one in quotes")
    if count < 1:
        raise ConfigError(f"{count} similar sentences cannot be given; ask for at least one")


def _plain(text: str) -> str:
    return "".join(text.split()).casefold()


def _unit(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Vectors = vectors / np.maximum(lengths, 1e-12)
    return unit
