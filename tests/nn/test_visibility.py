"""Who sees whom, as pictures."""

from __future__ import annotations

import pytest
import torch

from bertsmith.errors import TextError
from bertsmith.nn import Anticausal, Causal, Dense, Full, Mixed, Prefix, picture, visibility


def test_causal() -> None:
    assert picture(visibility(Causal(), [3])) == ["#..", "##.", "###"]


def test_full_leaves_padding_out() -> None:
    assert picture(visibility(Full(), [2, 3])[0]) == ["##.", "##.", "..."]


def test_causal_leaves_padding_out() -> None:
    assert picture(visibility(Causal(), [2, 3])[0]) == ["#..", "##.", "..."]


def test_prefix_source_sees_source_and_target_sees_what_is_written() -> None:
    first, second = visibility(Prefix((2, 0)), [4, 5])
    assert picture(first) == ["##...", "##...", "###..", "####.", "....."]
    assert picture(second) == picture(visibility(Causal(), [5]))


def test_dense_is_cut_to_the_texts() -> None:
    assert picture(visibility(Dense(torch.ones(2, 3, 3, dtype=torch.bool)), [2, 3])[0]) == [
        "##.",
        "##.",
        "...",
    ]


def test_right_to_left_sees_what_comes_after() -> None:
    assert picture(visibility(Anticausal(), [3])) == ["###", ".##", "..#"]


def test_each_text_of_a_batch_may_see_in_its_own_way() -> None:
    lengths = [4, 4, 3, 4]
    mixed = Mixed(sources=(4, 0, 0, 2), backward=(False, False, True, False))
    mixed.check(lengths)
    full, causal, backward, written = visibility(mixed, lengths)
    assert picture(full) == ["####"] * 4
    assert picture(causal) == picture(visibility(Causal(), [4]))
    assert picture(backward) == ["###.", ".##.", "..#.", "...."]
    assert picture(written) == ["##..", "##..", "###.", "####"]
    taken = visibility(mixed.take([2, 0]), [3, 4])
    assert picture(taken[0]) == picture(backward)
    with pytest.raises(TextError, match="3 directions for 4 texts"):
        Mixed((1, 1, 1, 1), (False,) * 3).check(lengths)
