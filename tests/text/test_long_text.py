"""Cut into chunks or not: the same tokens, words and offsets."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertsmith.text.long_text import NoChunker, SpaceChunker, WordPieceChunker
from bertsmith.text.safe_tokenizer import SafeTokenizer
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.text.truncation import Truncation

KINDS = ["uncased", "cased", "roberta", "albert"]
ODD = st.sampled_from(
    list("aAz é中文.,[]'’ \t\n\0\u0301\u0345\u302e\u200b한ñßİ\u0f0b\ufffd\u1fef0９ﬁ ")
)
RUNS = st.builds(lambda c, n: c * n, ODD | st.characters(codec="utf-8"), st.integers(1, 150))
TEXTS = st.lists(
    RUNS | st.sampled_from(["he likes. ", "playing", "[X]", "a b ", " 's"]), max_size=9
).map("".join)


def engines(tokenizer: Tokenizer) -> tuple[SafeTokenizer, SafeTokenizer]:
    source = tokenizer._source
    cut = SafeTokenizer(source.state, source.controls, long_text=0, chunk=20)
    return cut, SafeTokenizer(source.state, source.controls, long_text=10**9)


def assert_same(cut: SafeTokenizer, whole: SafeTokenizer, text: str) -> None:
    (got,), (expected,) = cut.pieces([text]), whole.pieces([text])
    assert got.ids.tolist() == expected.ids.tolist()
    assert got.words.tolist() == expected.words.tolist()
    assert got.offsets.tolist() == expected.offsets.tolist()
    assert got.total == expected.total


@pytest.mark.parametrize("extra", [(), ("[X]",), ("aa", "a a")])
@pytest.mark.parametrize("kind", KINDS)
def test_chunks_change_nothing(tokenizers, kind, extra) -> None:
    cut, whole = engines(tokenizers[kind].add_tokens(extra))

    @settings(max_examples=60, deadline=None)
    @given(TEXTS)
    def check(text: str) -> None:
        assert_same(cut, whole, text)

    check()


def test_each_kind_has_the_chunker_that_is_proved_for_it(tokenizers) -> None:
    found = {kind: type(tokenizers[kind]._safe_tokenizer._chunker) for kind in KINDS}
    assert found == {
        "uncased": WordPieceChunker,
        "cased": WordPieceChunker,
        "roberta": SpaceChunker,
        "albert": SpaceChunker,
    }
    assert type(tokenizers["roberta"].add_tokens(["[X]"])._safe_tokenizer._chunker) is NoChunker


@pytest.mark.parametrize("add_prefix_space", [False, True])
def test_byte_level_offsets_survive_the_cut(files, add_prefix_space) -> None:
    config = b'{"add_prefix_space": %s}' % str(add_prefix_space).lower().encode()
    made = Tokenizer.from_files({**files["roberta"], "tokenizer_config.json": config})
    cut, whole = engines(made)
    for text in (
        "word " * 50,
        " word" * 50,
        "a  b   c " * 40,
        "it's, he'll. " * 30,
        "世界。 ok" * 30,
    ):
        assert_same(cut, whole, text)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "text", ["he likes, ", "playing", "中文。", "e\u0301", " ", "a中", "...", "aб"]
)
def test_a_text_large_enough_to_be_cut_gives_the_tokens_of_the_whole(
    tokenizers, kind, text
) -> None:
    source = tokenizers[kind]._source
    whole = SafeTokenizer(source.state, source.controls, long_text=10**9)
    long = text * (70_000 // len(text))
    (expected,) = whole.pieces([long])
    got = tokenizers[kind].encode(long)
    assert np.array_equal(got.ids[1:-1], expected.ids)
    assert np.array_equal(got.offsets[1:-1], expected.offsets)
    (fast,), (cut,) = tokenizers[kind].fast_ids([long], 32)
    assert np.array_equal(fast[1:-1], expected.ids[:30])
    assert cut == max(expected.total - 30, 0)


@pytest.mark.parametrize("keep", ["head", "tail", "head+tail"])
def test_what_is_cut_from_a_giant_text_is_counted_exactly(tokenizers, keep) -> None:
    bert = tokenizers["uncased"]
    text = "he likes the cat, " * 6000
    every = bert.encode(text)
    setting = Truncation(max_length=50, keep=keep)
    got = bert.encode(text, "he", truncation=setting)
    assert got.cut == (6000 * 5 - 46, 0)
    body = got.ids[got.fields == 0]
    front = {"head": 46, "tail": 0, "head+tail": 11}[keep]
    all_ids = every.ids[1:-1]
    assert body.tolist() == [*all_ids[:front], *all_ids[len(all_ids) - (46 - front) :]]
    spans = got.offsets[got.fields == 0]
    assert all(text[a:b] in ("he", "likes", "the", "cat", ",") for a, b in spans.tolist())
