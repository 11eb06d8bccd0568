"""C5: control tokens written in a text, in any disguise, never become control ids."""

import itertools
import random

import pytest
import tiny_vocabulary

from bertsmith.text.learn import learn_vocabulary
from bertsmith.text.tokenizer import Tokenizer

pytestmark = pytest.mark.reliability

LINES = ["he likes playing with words", "<pad> [CLS] [SEP] <mask> </s> <s>"] * 20
TOKENIZERS = {
    "wordpiece": tiny_vocabulary.bert(),
    "byte-bpe": learn_vocabulary(LINES, kind="byte-bpe", size=400),
    "unigram": learn_vocabulary(LINES, kind="unigram", size=60),
    "unigram cased": learn_vocabulary(LINES, kind="unigram", size=60, lowercase=False),
}
WIDE = str.maketrans({"[": "［", "]": "］", "<": "＜", ">": "＞"})


def disguises(token: str) -> list[str]:
    invisible = ["\u200b", "\u200d", "\ufeff", "\0", "\u00ad", "\u2060"]
    found = [token, token.lower(), token.upper(), token.title(), token.translate(WIDE), token * 2]
    found += [mark.join(token) for mark in invisible]
    found += [token[:2] + mark + token[2:] for mark in invisible]
    found += [
        token.replace("S", "\uff33"),
        f"a{token}b",
        f"{token}\u0301",
        f"▁{token}",
        f" {token} ",
    ]
    return found


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_no_disguise_makes_a_control_token(kind: str) -> None:
    tokenizer: Tokenizer = TOKENIZERS[kind]
    controls = {tokenizer.token_to_id(token) for token in tokenizer.control_tokens}
    controls -= {tokenizer.special.unk}
    rng = random.Random(5)
    names = sorted(tokenizer.control_tokens | {"[CLS]", "[SEP]", "[MASK]", "[PAD]", "[UNK]"})
    texts = list(itertools.chain.from_iterable(disguises(name) for name in names))
    texts += [" ".join(rng.choices(texts, k=4)) for _ in range(1000)]
    for text, (ids, pair) in zip(
        texts, ((e.ids, e) for e in tokenizer.encode_batch(texts, texts)), strict=True
    ):
        assert not controls.intersection(ids[pair.fields >= 0].tolist()), text
    arrays, _ = tokenizer.fast_ids(texts, None)
    for text, ids in zip(texts, arrays, strict=True):
        assert ids.max() < tokenizer.vocab_size, text
        assert not controls.intersection(ids[1:-1].tolist()), text


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_the_way_in_is_there_when_it_is_asked_for(kind: str) -> None:
    tokenizer = TOKENIZERS[kind]
    for token in tokenizer.control_tokens:
        got = tokenizer.encode(f"he {token} he", allow_special=True)
        assert tokenizer.token_to_id(token) in got.ids[got.fields >= 0]
