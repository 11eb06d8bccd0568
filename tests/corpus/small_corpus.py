"""A corpus in memory with the arrays of a real one, made of random words."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from bertsmith.text.tokenizer import Tokenizer

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = ["a", *(f"w{i}" for i in range(200)), *(f"##p{i}" for i in range(100))]


def word_tokenizer() -> Tokenizer:
    vocab = "".join(f"{token}\n" for token in SPECIALS + WORDS)
    return Tokenizer.from_files({"vocab.txt": vocab.encode()})


def roberta_tokenizer() -> Tokenizer:
    letters = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "a", "b", "Ġ"]
    vocab = {token: number for number, token in enumerate(letters)}
    return Tokenizer.from_files(
        {"vocab.json": json.dumps(vocab).encode(), "merges.txt": b"#version: 0.2\n"}
    )


@dataclass(frozen=True)
class SmallCorpus:
    tokens: np.ndarray
    starts_word: np.ndarray
    sentences: np.ndarray
    documents: np.ndarray
    made_with: Tokenizer

    def tokenizer(self) -> Tokenizer:
        return self.made_with

    @property
    def all(self) -> np.ndarray:
        return np.arange(len(self.documents) - 1)


def small_corpus(
    documents: int = 50,
    *,
    sentences: tuple[int, int] = (1, 30),
    tokens: tuple[int, int] = (1, 40),
    seed: int = 0,
    tokenizer: Tokenizer | None = None,
) -> SmallCorpus:
    """Documents of so many sentences of so many tokens; a third of the tokens continue a word."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(sentences[0], sentences[1] + 1, documents)
    sizes = rng.integers(tokens[0], tokens[1] + 1, counts.sum())
    total = int(sizes.sum())
    borders = np.concatenate([[0], np.cumsum(sizes)])
    starts = (rng.random(total) < 0.67).astype(np.uint8)
    starts[borders[:-1]] = 1
    return SmallCorpus(
        tokens=rng.integers(5, 300, total).astype(np.uint16),
        starts_word=starts,
        sentences=borders,
        documents=np.concatenate([[0], np.cumsum(counts)]),
        made_with=tokenizer or word_tokenizer(),
    )
