"""C1: random Unicode gives the ids of a plain Python port of BERT's tokenization.

BERTSMITH_LONG=1 runs the million strings of the reliability page.
"""

import os
import random
import sys
import unicodedata

import plain_bert
import pytest
import tiny_vocabulary
from tokenizers.normalizers import Lowercase

pytestmark = pytest.mark.reliability

STRINGS = 500_000 if os.environ.get("BERTSMITH_LONG") else 25_000
OLD = unicodedata.ucd_3_2_0
LOWER = Lowercase()
# In Unicode 3.2 already, but of another class since: the Rust tables know the class of Unicode 8.
RECLASSED = {0x166D, 0x1734, 0x1885, 0x1886}
ODD = "\0\t\n\r \u00a0\u3000\u200b\u200d\ufeff\ufffd\u0301\u0345\u202e\u2028\u2029\u0378\U000e0001"
BLOCKS = [
    (0x20, 0x7E),
    (0xA0, 0x24F),
    (0x300, 0x36F),
    (0x370, 0x4FF),
    (0x590, 0x6FF),
    (0x900, 0x97F),
    (0xE00, 0xE7F),
    (0x1100, 0x11FF),
    (0x1E00, 0x1FFF),
    (0x2000, 0x2BFF),
    (0x3000, 0x30FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xAC00, 0xD7A3),
    (0xE000, 0xF8FF),
    (0xF900, 0xFFFF),
    (0x10300, 0x1D7FF),
    (0x1F300, 0x1F64F),
    (0x20000, 0x323AF),
    (0xF0000, 0x10FFFF),
]


def stable(code: int) -> bool:
    """Whether the age of a table cannot matter: old characters, and new ones that are plain."""
    now, then = unicodedata.category(chr(code)), OLD.category(chr(code))
    if now == "Cn" and LOWER.normalize_str(chr(code)) != chr(code):
        return False  # a letter of a later Unicode than Python's, such as the capitals of Garay
    return code not in RECLASSED and (now == then or now[0] in "LNSZ")


def strings(count: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    pools = [[chr(c) for c in range(a, b + 1) if stable(c)] for a, b in BLOCKS]
    found = []
    for _ in range(count):
        some = [rng.choice(pools) for _ in range(rng.randint(1, 4))] + [list(ODD), pools[0]]
        found.append("".join(rng.choice(rng.choice(some)) for _ in range(rng.randint(0, 24))))
    return found


@pytest.mark.parametrize("cased", [False, True])
@pytest.mark.parametrize("seed", [1, 2])
def test_random_unicode_gives_the_ids_of_the_plain_port(cased: bool, seed: int) -> None:
    rng = random.Random(99)
    more = [chr(c) for a, b in BLOCKS for c in range(a, b, 7) if b < 0x2FFFF and stable(c)]
    more += [f"##{c}" for c in more if rng.random() < 0.8] + ["ab", "##ab", "the", "中文"]
    tokenizer = tiny_vocabulary.bert(cased=cased, more=tuple(t for t in more if t.strip("\n\r#")))
    vocab = tokenizer._source.state["model"]["vocab"]
    texts = strings(STRINGS, seed)
    arrays, _ = tokenizer.fast_ids(texts, None)
    wrong = [
        text
        for text, ids in zip(texts, arrays, strict=True)
        if ids[1:-1].tolist() != plain_bert.tokenize(text, vocab, lowercase=not cased)
    ]
    assert not wrong, f"{len(wrong)} differ, the first is {wrong[0]!a}"


def test_every_old_character_and_only_new_ones_may_differ() -> None:
    rust = tiny_vocabulary.bert()._safe_tokenizer.safe
    differ = []
    for code in range(sys.maxunicode + 1):
        dense = 0x3400 <= code <= 0xD7A3 or code > 0x1FFFF
        if 0xD800 <= code <= 0xDFFF or (dense and code % 61):
            continue
        text = f"a{chr(code)}b"
        plain = rust.normalizer.normalize_str(text)
        words = [word for word, _ in rust.pre_tokenizer.pre_tokenize_str(plain)]
        if words != plain_bert.basic_words(text, lowercase=True):
            differ.append(code)
    assert all(OLD.category(chr(c)) == "Cn" or c in RECLASSED for c in differ)
    assert 0 < len(differ) < 1500
