"""Words found many at once are the words of jieba, to the last span."""

from __future__ import annotations

import logging
import random
import time
from itertools import islice

import jieba
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertsmith.text.jieba.words import JiebaSegmenter

jieba.setLogLevel(logging.WARNING)
ORACLE = jieba.Tokenizer()
FAST = JiebaSegmenter()

HAN = "我爱北京天安门的了是一不在a1+. \r\n\t，。豈\U00020000-_%龥T恤卡拉OK研究生命起源王小明去过"
# Letters that only begin words of the dictionary, and some that are in none.
BEGINNERS = "揶揄囍恹怃妩媚岿然佶屈聱牙γ射线AT&Tc#龘䶮鿕\u9fd6"
TEXT = """小明硕士毕业于中国科学院计算所，后在日本京都大学深造。结婚的和尚未结婚的，南京市长江大桥！
他来到了网易杭研大厦；工信处女干事每月经过下属科室都要亲口交代24口交换机等技术性器件的安装工作。
B超、C++ 3.14%、AT&T 与 e-mail：2018年5月，iPhone6s 卖了 5,000.50 元……乒乓球拍卖完了。"""


def jieba_spans(text: str) -> list[tuple[int, int]]:
    spans, at = [], 0
    for word in ORACLE.cut(text):
        spans.append((at, at + len(word)))
        at += len(word)
    return spans


@settings(max_examples=400, deadline=None)
@given(text=st.text(alphabet=HAN, max_size=30) | st.text(alphabet=BEGINNERS, max_size=12))
def test_words_are_those_of_jieba(text) -> None:
    assert FAST.words(text) == jieba_spans(text)


@settings(max_examples=100, deadline=None)
@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_any_characters_give_the_words_of_jieba(text) -> None:
    assert FAST.words(text) == jieba_spans(text)


@settings(max_examples=100, deadline=None)
@given(pieces=st.lists(st.sampled_from([*ORACLE.lcut(TEXT), *"的一是了我不人在他有"]), max_size=40))
def test_words_put_together_anew_are_divided_as_by_jieba(pieces) -> None:
    text = "".join(pieces)
    assert FAST.words(text) == jieba_spans(text)


def test_running_text_is_divided_as_by_jieba() -> None:
    assert FAST.words(TEXT) == jieba_spans(TEXT)
    assert "长江大桥" in {TEXT[start:end] for start, end in FAST.words(TEXT)}


def test_a_text_cut_into_chunks_gives_the_same_words(monkeypatch) -> None:
    text = TEXT * 3
    wanted = jieba_spans(text)
    for size in (1, 7, 50):
        monkeypatch.setattr("bertsmith.text.jieba.words.CHUNK", size)
        assert FAST.words(text) == wanted


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
    assert FAST.words(text) == jieba_spans(text)


def test_an_endless_run_of_rare_characters_takes_time_in_proportion() -> None:
    rng = random.Random(3)
    text = "".join(chr(rng.randrange(0x4E00, 0x9FA5)) for _ in range(60_000))
    assert FAST.words(text[:3000]) == jieba_spans(text[:3000])
    start = time.process_time()
    spans = FAST.words(text)
    assert time.process_time() - start < 5  # jieba itself needs minutes
    assert [spans[0][0], spans[-1][1]] == [0, len(text)]
