"""Windows of questions: nothing lost, the answer where it stands, and what is cut is said."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from answer_cases import KINDS, question, tokenizer
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_tasks import row

from bertsmith.errors import ConfigError, TextError, TooLongError
from bertsmith.labeled.example import Answers, Label
from bertsmith.tasks.answer.answer import FindAnswer
from bertsmith.tasks.length import LengthSettings
from bertsmith.text.truncation import Windows

CONTEXT = "The cat sat on the mat; the dog's log was 我爱北京 x " * 4
TASK = FindAnswer()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("length", "stride"), [(40, 7), (60, 30), (400, 128)])
def test_windows_are_those_of_the_tokenizer(kind: str, length: int, stride: int) -> None:
    lengths = LengthSettings(max_length=length, stride=min(stride, length // 3))
    examples = [question(CONTEXT, 4, 7), question("x", 0, 1, number=1)]
    features = TASK.features(examples, tokenizer(kind), lengths)
    rule = Windows(length=length, stride=lengths.stride)
    wanted = [
        (number, encoding)
        for number, example in enumerate(examples)
        for encoding in tokenizer(kind).windows(*example.texts, windows=rule)
    ]
    assert [feature.example for feature in features] == [number for number, _ in wanted]
    for feature, (_, encoding) in zip(features, wanted, strict=True):
        for name in ("ids", "words", "offsets", "segments", "fields"):
            mine = getattr(feature.encoding, name)
            np.testing.assert_array_equal(mine, getattr(encoding, name), err_msg=name)
        assert feature.encoding.tokens == encoding.tokens
        assert feature.at.tolist() == list(range(len(feature)))


@settings(max_examples=60, deadline=None)
@given(st.integers(16, 80), st.integers(0, 120), st.data())
def test_every_token_of_the_context_is_in_a_window_and_knows_its_number(
    length: int, words: int, data: st.DataObject
) -> None:
    room = (length - 3) - min(64, (length - 3) // 2)
    stride = data.draw(st.none() | st.integers(1, room))
    context = " ".join("abc"[: 1 + n % 3] for n in range(words))
    lengths = LengthSettings(max_length=length, stride=stride)
    features = TASK.features([row(0, ["who ?", context])], tokenizer("uncased"), lengths)
    whole = tokenizer("uncased").encode(context)
    told = whole.ids[whole.fields == 0]
    seen = np.full(len(told), -1)
    for feature in features:
        assert len(feature) <= length
        inside = feature.units >= 0
        assert (feature.encoding.fields == 1).tolist() == inside.tolist()
        seen[feature.units[inside]] = feature.encoding.ids[inside]
        assert feature.target is None
    assert seen.tolist() == told.tolist()


def test_the_target_is_the_answer_where_it_is_whole_and_the_first_token_elsewhere() -> None:
    start = CONTEXT.index("dog's")
    lengths = LengthSettings(max_length=40, stride=5)
    features = TASK.features([question(CONTEXT, start, start + 5)], tokenizer("cased"), lengths)
    whole = 0
    for feature in features:
        first, last = feature.target.tolist()
        offsets = feature.encoding.offsets
        inside = offsets[feature.units >= 0]
        if first == 0:
            assert last == 0
            assert inside[0, 0] > start or inside[-1, 1] < start + 5
        else:
            whole += 1
            assert (offsets[first, 0], offsets[last, 1]) == (start, start + 5)
    assert 0 < whole < len(features)


def test_a_question_without_an_answer_points_at_the_first_token() -> None:
    (feature,) = TASK.features(
        [row(0, ["who?", "a cat"], Answers(()))], tokenizer("cased"), LengthSettings()
    )
    assert feature.target.tolist() == [0, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_long_question_is_cut_counted_and_said(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    long = "why " * 40
    examples = [question(CONTEXT, 4, 7, number=n, text=text) for n, text in enumerate(["a?", long])]
    task = FindAnswer(question_limit=9)
    features = task.features(examples, tokenizer(kind), LengthSettings(max_length=64))
    asked = tokenizer(kind).encode(long)
    for feature in features:
        own = feature.encoding.ids[feature.encoding.fields == 0]
        if feature.example == 1:
            assert own.tolist() == asked.ids[asked.fields == 0][:9].tolist()
            assert feature.encoding.cut == (int((asked.fields == 0).sum()) - 9, 0)
        else:
            assert feature.encoding.cut == (0, 0)
    assert "questions truncated to task.question_limit: 1 (1)" in caplog.text
    cuts = [
        one.cut
        for one in task.decode([np.zeros((len(f), 2)) for f in features], features, examples)
    ]
    assert cuts == [0, int((asked.fields == 0).sum()) - 9]


def test_strict_refuses_to_cut_a_question() -> None:
    with pytest.raises(TooLongError, match=r"rows.tsv, line 1, id 0: .* 120 tokens.*may have 9"):
        FindAnswer(question_limit=9).features(
            [question(CONTEXT, 4, 7, text="why " * 40)],
            tokenizer("cased"),
            LengthSettings(max_length=64, strict=True),
        )


def test_an_answer_that_no_token_covers_is_reported_by_its_id(
    caplog: pytest.LogCaptureFixture,
) -> None:
    context = "a cat\u200b\u200b sat"
    example = question(context, 5, 7)
    with caplog.at_level(logging.WARNING):
        (feature,) = TASK.features([example], tokenizer("cased"), LengthSettings())
    assert feature.target.tolist() == [0, 0]
    assert "no token covers any of their characters: 1 (0)" in caplog.text
    with pytest.raises(TextError, match=r"rows.tsv, line 1, id 0: no token covers"):
        TASK.features([example], tokenizer("cased"), LengthSettings(strict=True))


def test_an_answer_longer_than_every_overlap_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    example = question(CONTEXT, 0, len(CONTEXT))
    features = TASK.features([example], tokenizer("cased"), LengthSettings(max_length=48))
    assert len(features) > 1
    assert not any(feature.target.any() for feature in features)
    assert "no window holds them whole: 1 (0)" in caplog.text


def test_settings_that_cut_or_skip_are_refused() -> None:
    examples = [question(CONTEXT, 4, 7)]
    for lengths, what in [
        (LengthSettings(keep="tail"), "length.keep"),
        (LengthSettings(budgets=(5, 5)), "length.budgets"),
        (LengthSettings(max_length=64, stride=40), "stride 40 would skip"),
        (LengthSettings(max_length=4), "no room"),
    ]:
        with pytest.raises(ConfigError, match=what):
            TASK.features(examples, tokenizer("cased"), lengths)


def test_rows_of_another_kind_are_refused_with_their_place() -> None:
    with pytest.raises(TextError, match=r"rows.tsv, line 3, id 2: .*two texts, not 1"):
        TASK.features([row(2, ["who?"])], tokenizer("cased"), LengthSettings())
    with pytest.raises(TextError, match=r"rows.tsv, line 1, id 0: .*not answers"):
        TASK.features([row(0, ["a", "b"], Label("x"))], tokenizer("cased"), LengthSettings())
