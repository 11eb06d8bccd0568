"""From logits to answers: the best spans exactly, and the gold answer back from any text."""

from __future__ import annotations

import os
import unicodedata

import numpy as np
import pytest
from answer_cases import GAPS, KINDS, WORDS, planted, question, tokenizer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny_tasks import row

from bertsmith.labeled.example import Answers, Example
from bertsmith.tasks.answer.answer import FindAnswer
from bertsmith.tasks.answer.decoding import best_spans
from bertsmith.tasks.feature import Feature
from bertsmith.tasks.length import LengthSettings
from bertsmith.text.tokenizer import Tokenizer

CASES = 500
MANY = settings(
    max_examples=5_000 if os.environ.get("BERTSMITH_LONG") else CASES // len(KINDS),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
LONGEST = 40
LENGTHS = LengthSettings(max_length=96)
TASK = FindAnswer(longest=LONGEST, n_best=3)


@st.composite
def word_contexts(draw: st.DrawFn) -> tuple[str, int, int]:
    """A context of words, and the place of a run of them."""
    words = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=40))
    gaps = [draw(st.sampled_from(GAPS)) for _ in words]
    first = draw(st.integers(0, len(words) - 1))
    last = draw(st.integers(first, min(first + 2, len(words) - 1)))
    context = starts = ""
    for number, (gap, word) in enumerate(zip(gaps, words, strict=True)):
        context += gap
        if number == first:
            starts = context
        context += word
        if number == last:
            end = len(context)
    return context, len(starts), end


def answered(example: Example, kind: str) -> tuple[list[Feature], Answers]:
    features = TASK.features([example], tokenizer(kind), LENGTHS)
    (said,) = TASK.decode(planted(features), features, [example])
    return features, said.value


@pytest.mark.parametrize("kind", KINDS)
def test_a_planted_run_of_words_comes_back_exactly(kind: str) -> None:
    @MANY
    @given(word_contexts())
    def check(case: tuple[str, int, int]) -> None:
        context, start, end = case
        features, value = answered(question(context, start, end), kind)
        assert any(feature.target.any() for feature in features)
        assert (value.start, value.end) == (start, end)
        assert value.text == context[start:end]

    check()


@pytest.mark.parametrize("kind", KINDS)
def test_any_characters_of_any_text_come_back_as_the_tokens_that_hold_them(kind: str) -> None:
    @MANY
    @given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=60), st.data())
    def check(context: str, data: st.DataObject) -> None:
        start = data.draw(st.integers(0, len(context) - 1))
        end = data.draw(st.integers(start + 1, min(start + 8, len(context))))
        example = question(context, start, end)
        features, value = answered(example, kind)
        assert value.text == context[value.start : value.end]
        held = _held(context, start, end, tokenizer(kind))
        assert any(feature.target.any() for feature in features) == bool(held)
        if held:
            assert (value.start, value.end) == (min(held), max(held) + 1)

    check()


def _held(context: str, start: int, end: int, tokens: Tokenizer) -> set[int]:
    """Every character of tokens that have one of context[start:end], written as plain loops.

    With the marks of the last letter, and without white space at the ends.
    """
    held: set[int] = set()
    found = tokens.encode("who?", context)
    for field, (first, last) in zip(found.fields, found.offsets.tolist(), strict=True):
        own = set(range(first, last))
        if field == 1 and own & set(range(start, end)):
            held |= own
    while held and unicodedata.category(context[max(held) + 1 : max(held) + 2] or " ")[0] == "M":
        held.add(max(held) + 1)
    while held and context[max(held)].isspace():
        held.remove(max(held))
    while held and context[min(held)].isspace():
        held.remove(min(held))
    return held


@settings(max_examples=150, deadline=None)
@given(st.integers(20, 60), st.integers(1, 150), st.integers(1, 12), st.data())
def test_an_answer_that_some_window_holds_is_found_wherever_it_stands(
    length: int, words: int, longest: int, data: st.DataObject
) -> None:
    room = (length - 3) - min(64, (length - 3) // 2)
    stride = data.draw(st.none() | st.integers(1, room))
    first = data.draw(st.integers(0, words - 1))
    last = data.draw(st.integers(first, min(first + longest, words) - 1))
    context = "x " * words
    example = question(context, 2 * first, 2 * last + 1)
    task = FindAnswer(longest=longest)
    lengths = LengthSettings(max_length=length, stride=stride)
    features = task.features([example], tokenizer("uncased"), lengths)
    (said,) = task.decode(planted(features), features, [example])
    if any(feature.target.any() for feature in features):
        assert (said.value.start, said.value.end) == (2 * first, 2 * last + 1)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 9), st.integers(1, 25), st.integers(0, 60))
def test_the_best_spans_are_those_of_a_search_through_all_pairs(
    seed: int, longest: int, count: int, words: int
) -> None:
    rng = np.random.default_rng(seed)
    examples = [row(n, ["who ?", "x " * (words + n)]) for n in range(3)]
    features = FindAnswer().features(examples, tokenizer("uncased"), LengthSettings(max_length=40))
    logits = [rng.normal(size=(len(f), 2)).astype(np.float32) for f in features]
    found = best_spans(logits, features, longest=longest, count=count)
    single = [
        n for n, f in enumerate(features) if [g.example for g in features].count(f.example) == 1
    ]
    for number in single:
        inside = np.flatnonzero(features[number].units >= 0).tolist()
        pairs = {
            (first, last): logits[number][first, 0] + logits[number][last, 1]
            for first in inside
            for last in inside
            if first <= last < first + longest
        }
        wanted = sorted(pairs.values(), reverse=True)[:count]
        here = found.passages == number
        assert sorted(found.scores[here].tolist(), reverse=True) == wanted
        for first, last, value in zip(
            found.starts[here].tolist(), found.ends[here].tolist(), found.scores[here], strict=True
        ):
            assert pairs[first, last] == value


def test_a_start_counts_only_in_the_window_that_shows_most_around_it() -> None:
    example = row(0, ["who ?", "x " * 60])
    features = TASK.features(
        [example], tokenizer("uncased"), LengthSettings(max_length=36, stride=8)
    )
    assert len(features) > 3
    logits = [np.zeros((len(f), 2), dtype=np.float32) for f in features]
    found = best_spans(logits, features, longest=3, count=1_000)
    chosen = {}
    for passage, start in zip(found.passages.tolist(), found.starts.tolist(), strict=True):
        assert chosen.setdefault(int(features[passage].units[start]), passage) == passage
    assert sorted(chosen) == list(range(60))
    for token, passage in chosen.items():
        around = {}
        for number, feature in enumerate(features):
            inside = feature.units[feature.units >= 0]
            if inside[0] <= token <= inside[-1]:
                around[number] = (
                    min(inside[-1] - token, 2),
                    min(token - inside[0], inside[-1] - token),
                )
        assert around[passage] == max(around.values())


def test_no_answer_is_given_twice_and_the_best_comes_first() -> None:
    """Several tokens of a byte-level vocabulary stand at the same character."""
    example = question("\u6211\u7231\u5317\u4eac \U0001f600 \u5929\u5b89\u95e8", 0, 2)
    task = FindAnswer(longest=40, n_best=50)
    features = task.features([example], tokenizer("byte-bpe"), LENGTHS)
    (said,) = task.decode(planted(features), features, [example])
    spans = [said.value, *said.others]
    places = [(one.start, one.end) for one in spans]
    assert len(set(places)) == len(places) > 5
    scores = [one.score for one in spans]
    assert scores == sorted(scores, reverse=True)
