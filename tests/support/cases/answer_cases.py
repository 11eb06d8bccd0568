"""Questions with contexts of every script, and logits that point at their answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache

import numpy as np
from tiny_tasks import row

from bertsmith.labeled.example import Answers, Example
from bertsmith.tasks.feature import Feature
from bertsmith.tasks.task import Logits
from bertsmith.text.learn import learn_vocabulary
from bertsmith.text.tokenizer import Tokenizer

KINDS = ("uncased", "cased", "byte-bpe", "unigram")
LINES = ["he likes playing with words", "the cat's mat, the dog's log", "我爱北京天安门"] * 9
SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
# Words that every tokenizer reads in full: no control characters, no white space inside.
WORDS = (
    *("cat", "Dog's", "(2,700)", "x", "cafe\u0301", "nai\u0308ve", "\u00c9t\u00e9", "3.14", "-"),
    *("\u6211\u7231\u5317\u4eac", "\u4e2d", "\u3002", "\U00020000", "\U0001f600", "\ud55c\uad6d"),
    *("\u0917\u093f", "\u0e01\u0e33", "\u00df", "\u0130", "\ufb01n", "\u00bd", "\U0001d54f"),
)
GAPS = (" ", "  ", "\n", "\r\n", "\t", "\u3000", "\u00a0")


@cache
def tokenizer(kind: str) -> Tokenizer:
    if kind in ("byte-bpe", "unigram"):
        return learn_vocabulary(LINES, kind=kind, size=300 if kind == "byte-bpe" else 90)
    letters = [chr(number) for number in range(33, 127)]
    vocabulary = [
        *SPECIALS,
        *letters,
        *(f"##{letter}" for letter in letters),
        *"\u6211\u7231\u4e2d",
    ]
    settings = {"do_lower_case": kind == "uncased"}
    return Tokenizer.from_files(
        {
            "vocab.txt": "\n".join(vocabulary).encode(),
            "tokenizer_config.json": json.dumps(settings).encode(),
        }
    )


def question(context: str, start: int, end: int, number: int = 0, text: str = "who?") -> Example:
    """A question whose answer is context[start:end]."""
    return row(number, [text, context], Answers(((context[start:end], start),)))


def planted(features: Sequence[Feature], *, seed: int = 0) -> list[Logits]:
    """Noise, and in each window a start and an end that stand out at its target.

    The first token, which says that a window has no answer, stands out less than an answer.
    """
    rng = np.random.default_rng(seed)
    found = []
    for feature in features:
        logits = rng.normal(size=(len(feature), 2)).astype(np.float32)
        assert feature.target is not None
        for side, at in enumerate(feature.target.tolist()):
            logits[at, side] += 50.0 if feature.target.any() else 20.0
        found.append(logits)
    return found
