"""Who sees whom, as pictures."""

from __future__ import annotations

import torch

from bertsmith.nn import Causal, Dense, Full, Prefix, picture, visibility


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
