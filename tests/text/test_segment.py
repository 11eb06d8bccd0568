"""Chinese words: characters of one word share a number."""

import sys

import numpy as np
import pytest

from bertsmith.errors import ConfigError, MissingExtraError
from bertsmith.text.segment import CharacterSegmenter, JiebaSegmenter, segmenter, word_starts


def groups(encoding, text: str) -> list[str]:
    found: dict[int, str] = {}
    for word, (start, end) in zip(encoding.words.tolist(), encoding.offsets.tolist(), strict=True):
        if word >= 0:
            found[word] = found.get(word, "") + text[start:end]
    return list(found.values())


def test_jieba_words_group_the_characters_of_a_word(tokenizers) -> None:
    text = "我爱北京天安门 playing, ok"
    plain = tokenizers["uncased"]
    grouped = plain.with_segmenter(JiebaSegmenter())
    assert groups(grouped.encode(text), text) == [
        "我",
        "爱",
        "北京",
        "天安门",
        "playing",
        ",",
        "ok",
    ]
    assert groups(plain.encode(text), text)[:4] == ["我", "爱", "北", "京"]
    assert grouped.encode(text).ids.tolist() == plain.encode(text).ids.tolist()


def test_a_segmenter_never_splits_or_joins_other_words(tokenizers) -> None:
    class Everything:
        def words(self, text: str) -> list[tuple[int, int]]:
            return [(0, len(text))]

    text = "he likes 北京 the cat"
    encoding = tokenizers["uncased"].with_segmenter(Everything()).encode(text)
    assert groups(encoding, text) == ["he", "likes", "北京", "the", "cat"]


def test_the_character_segmenter_is_what_bert_does(tokenizers) -> None:
    text = "我爱北京 he"
    one = tokenizers["uncased"].with_segmenter(CharacterSegmenter()).encode(text)
    assert one.words.tolist() == tokenizers["uncased"].encode(text).words.tolist()


def test_spans_out_of_order_are_refused(tokenizers) -> None:
    class Wrong:
        def words(self, text: str) -> list[tuple[int, int]]:
            return [(1, 2), (0, 1)]

    with pytest.raises(ConfigError, match="out of order"):
        tokenizers["uncased"].with_segmenter(Wrong()).encode("北京")


def test_a_missing_rjieba_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "rjieba", None)
    with pytest.raises(MissingExtraError, match=r"bertsmith\[zh\]"):
        segmenter("jieba")


def test_unknown_segmenters_are_named() -> None:
    with pytest.raises(ConfigError, match="jieba"):
        segmenter("jeiba")


def test_texts_looked_at_as_one_have_the_words_of_each() -> None:
    texts = ["我爱北京天安门\r", "", "plain", "\n北京 ok\r\n天安门", "北京"]
    jieba = JiebaSegmenter()

    class OneByOne:
        def words(self, text: str) -> list[tuple[int, int]]:
            return jieba.words(text)

    joined = word_starts(jieba, texts)
    apart = word_starts(OneByOne(), texts)
    breaks = np.cumsum([len(text) + 1 for text in texts])[:-1] - 1
    assert len(joined) == len(apart) == sum(map(len, texts)) + len(breaks)
    inside = np.ones(len(joined), dtype=bool)
    inside[breaks] = False  # nobody asks about the breaks that were put in
    assert joined[inside].tolist() == apart[inside].tolist()
    assert not joined[3]  # in 北京
    assert word_starts(jieba, []).tolist() == word_starts(OneByOne(), []).tolist() == []


def test_many_texts_get_the_words_that_each_gets_alone(tokenizers) -> None:
    grouped = tokenizers["uncased"].with_segmenter(JiebaSegmenter())
    texts = ["我爱北京天安门", "the cat", "", "北京 cat 天安门\n你好"]
    alone = [grouped.encode(text).words.tolist() for text in texts]
    assert [one.words.tolist() for one in grouped.encode_batch(texts)] == alone
