"""C6: odd corpora give a vocabulary or a message, in bounded memory."""

import os
import random
import resource

import pytest

from bertsmith.errors import TextError
from bertsmith.text.learn import learn_vocabulary

pytestmark = [pytest.mark.reliability]

MEGABYTE = 1 << 20
KINDS = ["wordpiece", "byte-bpe", "unigram"]


def corpora() -> dict[str, list[str]]:
    rng = random.Random(2)
    letters = "abcdefghijklmnopqrstuvwxyz"
    return {
        "one long line": ["the quick brown fox jumps over the lazy dog " * 20_000],
        "one long word": ["abcdefg" * 150_000],
        "all different": ["".join(rng.choices(letters, k=9)) for _ in range(3_000)],
        "only Chinese": [
            "".join(chr(rng.randint(0x4E00, 0x4FFF)) for _ in range(40)) for _ in range(200)
        ],
        "only emoji": ["👩‍👩‍👧🇫🇷😀🎉" * 20],
        "bad bytes": [b"ok \xff\xfe text \xe4".decode("utf-8", "replace")] * 9,
        "surrogates": ["a\ud800b c\udfff"] * 9,
        "control tokens": ["[CLS] [SEP] <pad> </s>"] * 9,
        "nul and marks": ["\0\0 a\u0301\u0301 \u200b \u202e b"] * 9,
    }


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", corpora())
def test_an_odd_corpus_gives_a_vocabulary_or_a_message(name: str, kind: str) -> None:
    try:
        made = learn_vocabulary(corpora()[name], kind=kind, size=400)
    except TextError as error:
        assert "nothing to learn" in str(error)  # noqa: PT017
        return
    assert 6 <= made.vocab_size <= 400
    assert len(made.encode(corpora()[name][0][:50])) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["a", "word ", "中文，"])
def test_an_endless_line_stays_in_bounds(unit: str) -> None:
    size = 100 if os.environ.get("BERTSMITH_LONG") else 4
    line = unit * (size * MEGABYTE // len(unit.encode()))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    made = learn_vocabulary([line], kind="byte-bpe", size=300)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert made.vocab_size <= 300
    assert (after - before) / 1024 < 500
