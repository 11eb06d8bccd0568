"""Masks words of held-out text by a fixed rule, so that the examples are not hand-picked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from bertsmith.corpus.shards import Corpus, open_corpus
from bertsmith.text.tokenizer import Tokenizer

FEWEST, MOST = 7, 18  # tokens of a sentence
PROSE = 0.8  # of the tokens are letters: a sentence, no grammar or code
SHORTEST = 4  # letters of a word worth hiding


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
