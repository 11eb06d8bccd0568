"""Windows half a length apart: they fit any length, and every token stands in one."""

from __future__ import annotations

import pytest
from tiny_tasks import word_tokenizer

from bertsmith.tasks.length import LengthSettings, encodings
from bertsmith.text.encoding import Encoding

TOKENIZER = word_tokenizer(["one", "two", "three", "four"])
WORDS = " ".join(["one", "two", "three", "four"] * 40)


def places(encoding: Encoding) -> set[tuple[int, int]]:
    pairs = (tuple(map(int, pair)) for pair in encoding.offsets)
    return {(start, end) for start, end in pairs if start < end}


@pytest.mark.parametrize("length", [3, 4, 5, 16, 64])
def test_half_a_window_fits_every_length(length: int) -> None:
    lengths = LengthSettings(max_length=length, stride="half")
    (windows,) = encodings([(WORDS,)], TOKENIZER, lengths)
    assert all(len(window.ids) <= length for window in windows)
    covered = set().union(*map(places, windows))
    assert covered == places(TOKENIZER.encode(WORDS))
    assert len(windows) > 1


def test_without_a_stride_there_are_no_windows() -> None:
    assert LengthSettings(max_length=64).step is None
    assert LengthSettings(max_length=64, stride=9).step == 9
    assert LengthSettings(max_length=64, stride="half").step == 31


def test_what_joins_windows_is_refused_where_there_are_none() -> None:
    with pytest.raises(ValueError, match="joins windows, and there are none without stride"):
        LengthSettings(pool="max")
    assert LengthSettings(pool="max", stride=9).pool == "max"
