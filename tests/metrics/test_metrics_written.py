"""ROUGE, BLEU, chrF and distinct n-grams equal rouge-score and sacrebleu."""

from __future__ import annotations

import random

import numpy as np
import pytest
from rouge_score import rouge_scorer
from sacrebleu.metrics import BLEU, CHRF

from bertsmith.errors import ConfigError
from bertsmith.metrics import WRITTEN
from bertsmith.metrics.rouge import longest_common, rouge_tokens
from bertsmith.metrics.significance import bootstrap
from bertsmith.metrics.written_text import distinct

TEXT = (
    'The cat sat on the "mat", 3.5 times; it\'s 1,000-2 e.g. well-known &quot;x&quot; A&amp;B '
    "café <b> 10% of $5.00, (yes) no? No! U.S. 7-8 a/b end."
)
ENGLISH = TEXT.split(" ")
CHINESE = "今天天气很好，我们去公园玩吧。“好的”！Python3 和 BERT 模型 3.5 倍：《书》（名）~ ｗ"


def texts(seed: int, *, chinese: bool, count: int = 60) -> list[str]:
    random_ = random.Random(seed)
    if chinese:
        return [
            "今" + "".join(random_.choices(CHINESE, k=random_.randint(1, 25))) for _ in range(count)
        ]
    return [" ".join(random_.choices(ENGLISH, k=random_.randint(1, 25))) for _ in range(count)]


def noisy(some: list[str], seed: int) -> list[str]:
    """Near to the references, an empty one and an equal one among them."""
    random_ = random.Random(seed)
    made = ["".join(c for c in text if random_.random() < 0.8) for text in some]
    return ["", some[1], *made[2:]]


class _Characters:
    def tokenize(self, text: str) -> list[str]:
        spaced = "".join(f" {c} " if "\u4e00" <= c <= "\u9fff" else c for c in text.lower())
        plain = (c if c.isascii() and c.isalnum() else " " for c in spaced)
        known = (c if "\u4e00" <= c <= "\u9fff" else p for c, p in zip(spaced, plain, strict=True))
        return "".join(known).split()


@pytest.mark.parametrize("chinese", [False, True])
def test_rouge_equals_rouge_score(chinese: bool) -> None:
    names = ["rouge1", "rouge2", "rougeL"]
    scorer = rouge_scorer.RougeScorer(names, tokenizer=_Characters() if chinese else None)
    references = texts(1, chinese=chinese)
    written = noisy(references, 2)
    figures = WRITTEN.score(references, written)
    wanted = [scorer.score(a, b) for a, b in zip(references, written, strict=True)]
    for name, ours in zip(names, ("rouge_1", "rouge_2", "rouge_l"), strict=True):
        mean = float(np.mean([one[name].fmeasure for one in wanted]))
        assert figures[ours] == pytest.approx(mean, abs=1e-12), name
    assert 0 < figures["rouge_2"] < 1


@pytest.mark.parametrize("chinese", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_bleu_and_chrf_equal_sacrebleu(chinese: bool, seed: int) -> None:
    references = texts(seed, chinese=chinese)
    written = noisy(references, seed + 9)
    figures = WRITTEN.score(references, written)
    bleu = BLEU(tokenize="zh" if chinese else "13a")
    assert figures["bleu"] * 100 == pytest.approx(
        bleu.corpus_score(written, [references]).score, abs=1e-9
    )
    assert figures["chrf"] * 100 == pytest.approx(
        CHRF().corpus_score(written, [references]).score, abs=1e-9
    )


@pytest.mark.parametrize("written", ["a b c", "", "x y z w v", "the cat", "the a cat b sat d e"])
def test_short_texts_equal_sacrebleu(written: str) -> None:
    reference = "the cat sat on the mat"
    figures = WRITTEN.score([reference], [written])
    assert figures["bleu"] * 100 == pytest.approx(
        BLEU().corpus_score([written], [[reference]]).score, abs=1e-9
    )
    assert figures["chrf"] * 100 == pytest.approx(
        CHRF().corpus_score([written], [[reference]]).score, abs=1e-9
    )


def test_tokens_of_rouge() -> None:
    assert rouge_tokens("It's BERT，模型 3.5x！") == ["it", "s", "bert", "模", "型", "3", "5x"]


def test_longest_common_subsequence_equals_the_table() -> None:
    random_ = random.Random(5)
    for _ in range(200):
        first, second = (random_.choices("abcd", k=random_.randint(0, 9)) for _ in range(2))
        table = np.zeros((len(first) + 1, len(second) + 1), dtype=int)
        for i, a in enumerate(first):
            for j, b in enumerate(second):
                table[i + 1, j + 1] = (
                    table[i, j] + 1 if a == b else max(table[i, j + 1], table[i + 1, j])
                )
        assert longest_common(first, second) == table[-1, -1]


def test_distinct_and_exact() -> None:
    assert distinct(["a b a", "a b"], 1) == pytest.approx(2 / 5)
    assert distinct(["a b a", "a b"], 2) == pytest.approx(2 / 3)
    assert distinct(["你好你"], 1) == pytest.approx(2 / 3)
    assert distinct([""], 1) == 0.0
    assert WRITTEN.score(["a b", "c"], [" a  b", "C"])["exact"] == 0.5


def test_interval_and_bad_rows() -> None:
    references = texts(3, chinese=False)
    figure = WRITTEN.figure(references, noisy(references, 1))
    found = bootstrap(figure, len(references), samples=100)
    assert found.low < found.value < found.high
    with pytest.raises(ConfigError, match="3 targets, but 1 predictions"):
        WRITTEN.score(["a", "b", "c"], ["a"])
