"""Characters to tokens and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertsmith.tasks.answer.features import characters_of, tokens_at


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=12), st.data())
def test_an_answer_is_at_the_tokens_that_share_a_character_with_it(
    steps: list[tuple[int, int]], data: st.DataObject
) -> None:
    offsets, at = [], 0
    for gap, width in steps:
        offsets.append((at + gap, at + gap + width))
        at += gap + data.draw(st.integers(0, width))  # tokens may share characters
    start = data.draw(st.integers(0, at + 3))
    end = data.draw(st.integers(start + 1, at + 5))
    wanted = [
        token for token, (a, b) in enumerate(offsets) if set(range(a, b)) & set(range(start, end))
    ]
    found = tokens_at("x" * (at + 9), np.array(offsets, np.int32).reshape(-1, 2), start, end)
    assert found == ((wanted[0], wanted[-1]) if wanted else None)


@pytest.mark.parametrize(
    ("text", "span", "wanted"),
    [
        (" a \r\n", (0, 5), (1, 2)),
        ("cafe\u0301\u0302 x", (0, 4), (0, 6)),
        ("cafe x", (0, 4), (0, 4)),
        ("\u2764\ufe0f", (0, 1), (0, 2)),
        ("   ", (0, 3), (3, 3)),
    ],
)
def test_white_space_is_left_out_and_marks_stay_with_their_letter(
    text: str, span: tuple[int, int], wanted: tuple[int, int]
) -> None:
    offsets = np.array([span], dtype=np.int32)
    assert characters_of(text, offsets, 0, 0) == wanted
    assert tokens_at(text, offsets, *span) == ((0, 0) if text.strip() else None)
