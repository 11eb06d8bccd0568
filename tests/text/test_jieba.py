"""Word boundaries next to Chinese characters are those of jieba itself."""

from __future__ import annotations

import logging
import random
import time
from itertools import islice

import jieba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertsmith.text.segment import JiebaSegmenter

jieba.setLogLevel(logging.WARNING)
ORACLE = jieba.Tokenizer()
FAST = JiebaSegmenter()

HAN = "我爱北京天安门的了是一不在a1+. \r\n\t，。豈\U00020000-_%龥T恤卡拉OK研究生命起源王小明去过"
# Letters that only begin words of the dictionary, and some that are in none.
BEGINNERS = "揶揄囍恹怃妩媚岿然佶屈聱牙γ射线AT&Tc#龘䶮鿕\u9fd6"
ODD = "㐀䶵\U00020000鿖鿿豈々〇あア가éЖ .-_+#&%,，。！？“”()（）1234567890abcXYZ\u3000\u200b\ufeff"
TEXT = """小明硕士毕业于中国科学院计算所，后在日本京都大学深造。结婚的和尚未结婚的，南京市长江大桥！
他来到了网易杭研大厦；工信处女干事每月经过下属科室都要亲口交代24口交换机等技术性器件的安装工作。
B超、C++ 3.14%、AT&T 与 e-mail：2018年5月，iPhone6s 卖了 5,000.50 元……乒乓球拍卖完了。"""


def is_han(character: str) -> bool:
    """Whether jieba looks at this character as a Chinese one."""
    return "\u4e00" <= character <= "\u9fd5"


def assert_same_words(text: str) -> None:
    """Every boundary with a Chinese character on either side is one of jieba, and the reverse."""
    starts = {start for start, _ in FAST.words(text)}
    expected = set(np.cumsum([0, *map(len, ORACLE.cut(text))]).tolist()[:-1])
    for at in range(len(text)):
        if is_han(text[at]) or (at and is_han(text[at - 1])):
            assert (at in starts) == (at in expected), (text, at)


def assert_spans_cover(text: str) -> None:
    ends = [0, *(end for _, end in FAST.words(text))]
    assert [start for start, _ in FAST.words(text)] == ends[:-1]
    assert ends[-1] == len(text)


@settings(max_examples=400, deadline=None)
@given(text=st.text(alphabet=HAN, max_size=30) | st.text(alphabet=BEGINNERS, max_size=12))
def test_words_are_those_of_jieba(text) -> None:
    assert_same_words(text)
    assert_spans_cover(text)


@settings(max_examples=100, deadline=None)
@given(text=st.text(max_size=40))
def test_any_characters_give_the_words_of_jieba(text) -> None:
    assert_same_words(text)
    assert_spans_cover(text)


@settings(max_examples=100, deadline=None)
@given(pieces=st.lists(st.sampled_from([*ORACLE.lcut(TEXT), *"的一是了我不人在他有"]), max_size=40))
def test_words_put_together_anew_are_divided_as_by_jieba(pieces) -> None:
    assert_same_words("".join(pieces))


@pytest.mark.parametrize("kind", ["words", "characters", "mixed"])
def test_thousands_of_random_lines_have_the_words_of_jieba(kind) -> None:
    rng = random.Random(kind)
    words = [word for word, count in ORACLE.FREQ.items() if count]
    characters = [chr(code) for code in range(0x4E00, 0x9FD6)]
    for _ in range(1000):
        if kind == "words":
            line = rng.choices(words, k=8)
        elif kind == "characters":
            line = rng.choices(characters, k=20)
        else:
            line = rng.choices([*ODD, *rng.choices(words, k=20), *rng.choices(TEXT, k=20)], k=20)
        assert_same_words("".join(line))


def test_running_text_is_divided_as_by_jieba() -> None:
    assert_same_words(TEXT)
    assert "长江大桥" in {TEXT[start:end] for start, end in FAST.words(TEXT)}


def test_a_run_that_is_a_word_stays_apart() -> None:
    # The single characters of such words are so frequent that they beat the word itself.
    known = (word for word, count in ORACLE.FREQ.items() if count and len(word) == 2)
    apart = list(islice((word for word in known if len(ORACLE.lcut(word)) == 2), 30))
    assert len(apart) == 30
    for word in apart:
        assert FAST.words(word) == [(0, 1), (1, 2)]


def test_surrogates_are_characters_like_others() -> None:
    assert FAST.words("北京\ud800天安门") == [(0, 2), (2, 3), (3, 6)]


@pytest.mark.parametrize("text", ["", "\r\n", "。", "a", "\r\n\r\r\n北京\r\n"])
def test_short_texts_give_the_words_of_jieba(text) -> None:
    assert_same_words(text)
    assert_spans_cover(text)


def test_an_endless_run_of_rare_characters_takes_time_in_proportion() -> None:
    rng = random.Random(3)
    text = "".join(chr(rng.randrange(0x4E00, 0x9FA5)) for _ in range(60_000))
    assert_same_words(text[:3000])
    start = time.process_time()
    spans = FAST.words(text)
    assert time.process_time() - start < 5  # jieba itself needs minutes
    assert [spans[0][0], spans[-1][1]] == [0, len(text)]
