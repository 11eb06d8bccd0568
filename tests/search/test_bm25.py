"""BM25 in Lucene's form, held to bm25s; words; fusion by rank."""

from __future__ import annotations

import numpy as np
import pytest

from bertsmith.errors import ConfigError
from bertsmith.search import bm25
from bertsmith.search.bm25 import Bm25, Postings, postings_files
from bertsmith.search.index import fuse
from bertsmith.search.words import Words


def postings(texts: list[list[str]], first: int = 0) -> Postings:
    files = postings_files(texts)
    numbers = {
        name: np.frombuffer(files[name], "<u8" if name.endswith("u64") else "<u4")
        for name in bm25.FILES
        if name != bm25.TERMS
    }
    return Postings(
        terms=files[bm25.TERMS].split(b"\n")[:-1],
        starts=numbers[bm25.POSTING_STARTS],
        rows=numbers[bm25.POSTINGS],
        counts=numbers[bm25.COUNTS],
        lengths=numbers[bm25.LENGTHS],
        first=first,
    )


def some_texts(count: int) -> list[list[str]]:
    random = np.random.default_rng(1)
    words = [f"w{i}" for i in range(200)] + ["天气", "北京"]
    chances = 1 / np.arange(1, len(words) + 1)
    chances /= chances.sum()
    return [random.choice(words, random.integers(1, 30), p=chances).tolist() for _ in range(count)]


def test_scores_equal_those_of_bm25s() -> None:
    bm25s = pytest.importorskip("bm25s")
    texts = some_texts(500)
    oracle = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
    oracle.index(texts, show_progress=False)
    ours = Bm25([postings(texts[:200]), postings(texts[200:], 200)])
    for query in (["w1"], ["w1", "w5", "w5"], ["天气", "w150"], ["w0", "w199", "北京"]):
        wanted = oracle.get_scores(query)
        np.testing.assert_allclose(ours.scores(query), wanted, atol=1e-5)


def test_the_formula() -> None:
    ours = Bm25([postings([["a", "a", "b"], ["b"], ["c", "c"]])])
    idf = np.log(1 + (3 - 1 + 0.5) / (1 + 0.5))
    assert ours.scores(["a"])[0] == pytest.approx(idf * 2 / (2 + 1.2 * (0.25 + 0.75 * 3 / 2)))
    assert ours.scores(["nowhere"]).tolist() == [0, 0, 0]
    assert ours.best(["a"], 5) == [(0, pytest.approx(ours.scores(["a"])[0]))]
    assert [row for row, _ in ours.best(["b"], 5)] == [1, 0]
    assert ours.best(["b"], 5, np.array([True, False, True]))[0][0] == 0


def test_equal_scores_are_listed_by_row() -> None:
    ours = Bm25([postings([["x"]] * 50)])
    assert [row for row, _ in ours.best(["x"], 7)] == list(range(7))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The ＡＢＣ of Straße!", ["the", "abc", "of", "strasse"]),
        ("C3PO's x_y 3.14", ["c3po", "s", "x_y", "3", "14"]),
        ("", []),
        ("北京天气ABC的代码,3年", ["北京", "天气", "abc", "的", "代码", "3", "年"]),
    ],
)
def test_words_by_the_segmenter(text: str, words: list[str]) -> None:
    assert Words("jieba").of(text) == words


def test_words_as_pairs_of_characters() -> None:
    assert Words("bigrams").of("今天天气 A我B好") == ["今天", "天天", "天气", "a", "我", "b", "好"]
    with pytest.raises(ConfigError, match="no segmenter is called 'jeiba'; did you mean 'jieba'"):
        Words("jeiba")


def test_fusion_by_reciprocal_rank() -> None:
    fused = dict(fuse([["a", "b"], ["b", "c"]], (1, 1)))
    assert fused == pytest.approx({"a": 1 / 61, "b": 1 / 62 + 1 / 61, "c": 1 / 62})
    assert [item for item, _ in fuse([["a", "b"], ["b", "c"]], (1, 0))][:2] == ["a", "b"]
    with pytest.raises(ConfigError, match="not all 0"):
        fuse([["a"], ["b"]], (0, 0))
