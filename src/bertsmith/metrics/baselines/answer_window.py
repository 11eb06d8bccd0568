"""Answers by a sliding window: the rare words closest to the words of the question.

After the sliding window of Richardson et al. 2013 (MCTest), which is also the first baseline of
SQuAD. A position of the context scores by the inverse document frequency of the question's words
around it, weighted by distance, plus that of its whole sentence; the answer is the run of words
outside the question at the best position, within one sentence and no longer than three quarters of
the gold answers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from bertsmith.metrics.arrays import Floats
from bertsmith.metrics.baselines.majority import Texts
from bertsmith.metrics.baselines.tfidf import TOKEN, tokens

# Chosen on 40 of the 48 articles of SQuAD's dev set: window 10, 20, 40; weight 0, 0.2, 0.5, 1.
WINDOW = 10
SENTENCE_WEIGHT = 0.5
_STOPS = frozenset(".!?;。！？；")


def answer_words(
    texts: Texts, targets: Sequence[Sequence[str]], new: Texts, labels: Sequence[str]
) -> list[str]:
    """Questions and contexts, gold answers -> one answer, a part of its context, for each."""
    rarity = _inverse_frequencies({context for _, context in (*texts, *new)})
    lengths = [len(tokens(golds[0])) for golds in targets if golds]
    longest = max(1, round(float(np.quantile(lengths, 0.75)))) if lengths else 3
    return [_answer(question, context, rarity, longest) for question, context in new]


def _inverse_frequencies(contexts: Iterable[str]) -> dict[str, float]:
    """The inverse document frequency of every word; punctuation has none."""
    counts: Counter[str] = Counter()
    total = 0
    for context in contexts:
        counts.update(set(tokens(context)))
        total += 1
    return {word: math.log((total + 1) / n) for word, n in counts.items() if word[0].isalnum()}


def _answer(question: str, context: str, rarity: Mapping[str, float], longest: int) -> str:
    question_words = set(tokens(question))
    spans = [match.span() for match in TOKEN.finditer(context)]
    words = [context[start:end].lower() for start, end in spans]
    if not words:
        return ""
    weights = np.array([rarity.get(word, 0.0) for word in words])
    shared = np.array([word in question_words for word in words])
    sentence = np.cumsum([0, *(word in _STOPS for word in words[:-1])])
    scores = _smoothed(weights * shared)
    scores += SENTENCE_WEIGHT * np.bincount(sentence, weights * shared)[sentence]
    # Of words equally near the question the rarer one is the answer, not "of" or "the".
    best = int(np.where(shared, 0.0, scores * weights).argmax())
    fits = ~shared & (weights > 0) & (sentence == sentence[best])
    first, last = best, best + 1
    while last - first < longest and last < len(words) and fits[last]:
        last += 1
    while last - first < longest and first > 0 and fits[first - 1]:
        first -= 1
    return context[spans[first][0] : spans[last - 1][1]]


def _smoothed(weights: Floats) -> Floats:
    """(T,) -> (T,): the sum of the weights around each position, each over sqrt(1 + distance)."""
    kernel = 1 / np.sqrt(1 + np.abs(np.arange(-WINDOW, WINDOW + 1)))
    return np.convolve(weights, kernel)[WINDOW:-WINDOW]
