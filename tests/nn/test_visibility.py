"""Who sees whom, as pictures."""

from __future__ import annotations

import torch

from bertsmith.nn import bidirectional, causal, picture, real, seq2seq


def test_causal() -> None:
    assert picture(causal(torch.ones(1, 3, dtype=torch.bool))) == ["#..", "##.", "###"]


def test_bidirectional_leaves_padding_out() -> None:
    assert picture(bidirectional(real([2, 3]))[0]) == ["##.", "##.", "..."]


def test_causal_leaves_padding_out() -> None:
    assert picture(causal(real([2, 3]))[0]) == ["#..", "##.", "..."]


def test_seq2seq_source_sees_source_and_target_sees_what_is_written() -> None:
    target = torch.tensor([[False, False, True, True, False]])
    assert picture(seq2seq(real([4, 5])[:1], target)) == [
        "##...",
        "##...",
        "###..",
        "####.",
        ".....",
    ]


def test_seq2seq_source_does_not_see_a_target_that_stands_before_it() -> None:
    target = torch.tensor([[True, False, False]])
    assert picture(seq2seq(real([3]), target)) == ["###", ".##", ".##"]
