"""Chinese words: characters of one word share a number."""

import sys

import pytest

from bertsmith.errors import ConfigError, MissingExtraError
from bertsmith.text.segment import CharacterSegmenter, JiebaSegmenter, segmenter


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


def test_a_missing_jieba_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "jieba", None)
    with pytest.raises(MissingExtraError, match=r"bertsmith\[zh\]"):
        segmenter("jieba")


def test_unknown_segmenters_are_named() -> None:
    with pytest.raises(ConfigError, match="jieba"):
        segmenter("jeiba")
