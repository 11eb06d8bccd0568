"""Where sentences end, in English and in Chinese."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertsmith.text.sentences import split_sentences

CASES = [
    ["It rained.", "We stayed in!", "Did you?", "Yes."],
    ["Mr. Smith met Dr. J. R. Jones at 3.14 p.m. on Jan. 5, see No. 7 and Fig. 2."],
    ["He lives in the U.S. Army base.", "Nobody knew."],
    ["She moved to the U.S.", "The rest stayed."],
    ['"Is it you?" he asked.', '"Yes!"', "Then silence."],
    ["Wait... what is this...", "Nothing."],
    ["1. Open the door.", "2. Close it."],
    ["The fox (a red one.) ran.", "It hid (in a hole.)", "Gone."],
    ["Compare e.g. Foo and i.e. Bar.", "Done."],
    ["A line.", "<br /><br />Another line."],
    ["Yahoo! is a name."],
    ["no capital. after the stop stays together."],
    ["今天很好。", "你来了吗？", "来了！", "好"],
    ["他说：“你好。”", "她走了；", "我留下了……", "后来呢？"],
    ["真的吗?", "是的!", "价格是3.5元。"],
    ["「走吧。」", "『好！』", "他们走了。"],
    ["Version 2.0 costs $3.50 at www.example.com today.", "Buy it."],
]


@pytest.mark.parametrize("sentences", CASES, ids=lambda case: case[0][:30])
def test_sentences_end_where_a_reader_would_say(sentences) -> None:
    chinese = any("\u3000" <= letter <= "\u9fff" for letter in sentences[0])
    assert split_sentences(("" if chinese else " ").join(sentences)) == sentences


@given(st.text(alphabet="aB. !?。？\"'“”…\n<3\u00a0中 ", max_size=60))
def test_nothing_but_space_is_lost(text) -> None:
    def packed(part: str) -> str:
        return "".join(part.split())

    found = split_sentences(text)
    assert packed("".join(found)) == packed(text)
    assert all(sentence == sentence.strip() and sentence for sentence in found)


def test_a_text_without_stops_is_one_sentence() -> None:
    assert split_sentences("  just some words ") == ["just some words"]
    assert split_sentences(" \n ") == []
