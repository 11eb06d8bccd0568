"""Answers by a window of words: the rare words that stand closest to those of the question.

After the sliding window of Richardson et al. 2013 (MCTest), which is also the first baseline of
SQuAD. A place of the context weighs how rare the question's words around it are, the nearer the
more, and how many of them its sentence has; the answer is the run of words outside the question
at the best place, within one sentence and no longer than three of four gold answers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from bertsmith.metrics.arrays import Floats
from bertsmith.metrics.baselines.baseline import Texts
from bertsmith.metrics.baselines.tokens import WORD, words_of

# Chosen on 40 of the 48 articles of SQuAD's dev set: reach 10, 20, 40; share 0, 0.2, 0.5, 1.
REACH = 10
SENTENCE_SHARE = 0.5
_STOPS = frozenset(".!?;。！？；")


def answer_words(
    texts: Texts, targets: Sequence[Sequence[str]], new: Texts, labels: Sequence[str]
) -> list[str]:
    """Questions and contexts, gold answers -> one answer, a part of its context, for each."""
    rarity = _rarity({context for _, context in (*texts, *new)})
    lengths = [len(words_of(golds[0])) for golds in targets if golds]
    longest = max(1, round(float(np.quantile(lengths, 0.75)))) if lengths else 3
    return [_answer(question, context, rarity, longest) for question, context in new]


def _rarity(contexts: Iterable[str]) -> dict[str, float]:
    """The less contexts have a word, the more it says; a mark says nothing."""
    counts: Counter[str] = Counter()
    total = 0
    for context in contexts:
        counts.update(set(words_of(context)))
        total += 1
    return {word: math.log((total + 1) / n) for word, n in counts.items() if word[0].isalnum()}


def _answer(question: str, context: str, rarity: Mapping[str, float], longest: int) -> str:
    asked = set(words_of(question))
    places = [match.span() for match in WORD.finditer(context)]
    words = [context[start:end].lower() for start, end in places]
    if not words:
        return ""
    weights = np.array([rarity.get(word, 0.0) for word in words])
    shared = np.array([word in asked for word in words])
    sentence = np.cumsum([0, *(word in _STOPS for word in words[:-1])])
    near = _smoothed(weights * shared)
    near += SENTENCE_SHARE * np.bincount(sentence, weights * shared)[sentence]
    # Of words equally near the question the rarer one is the answer, not "of" or "the".
    best = int(np.where(shared, 0.0, near * weights).argmax())
    fits = ~shared & (weights > 0) & (sentence == sentence[best])
    first, last = best, best + 1
    while last - first < longest and last < len(words) and fits[last]:
        last += 1
    while last - first < longest and first > 0 and fits[first - 1]:
        first -= 1
    return context[places[first][0] : places[last - 1][1]]


def _smoothed(weights: Floats) -> Floats:
    """(T,) -> (T,): the weights around each place, each by one over the root of its distance."""
    kernel = 1 / np.sqrt(1 + np.abs(np.arange(-REACH, REACH + 1)))
    return np.convolve(weights, kernel)[REACH:-REACH]
