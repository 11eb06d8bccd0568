"""C3: what holds for any str; C4: lone surrogates.

BERTSMITH_LONG=1 runs the 20,000 cases of the reliability page.
"""

import logging
import os
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
import tiny_vocabulary
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bertsmith.text.learn import learn_vocabulary

pytestmark = pytest.mark.reliability

CASES = 20_000 if os.environ.get("BERTSMITH_LONG") else 200
LINES = ["he likes playing with words", "the cat's mat, the dog's log", "我爱北京天安门"] * 9
BERT = tiny_vocabulary.bert(more=("he", "##ing", "我", "é", "한"))
TOKENIZERS = {
    "uncased": BERT,
    "cased": tiny_vocabulary.bert(cased=True, more=("é", "##é")),
    "byte-bpe": learn_vocabulary(LINES, kind="byte-bpe", size=300),
    "unigram": learn_vocabulary(LINES, kind="unigram", size=90),
    "extra": BERT.add_tokens(["[X]"]),
}
ANY = st.text(st.characters(exclude_categories=()), max_size=60) | st.lists(
    st.sampled_from(
        ["[CLS]", "a", " ", "\0", "\ud800", "e\u0301", "中", "[X]", "<pad>", "👩‍👧", "\u202e"]
    ),
    max_size=20,
).map("".join)
MANY = settings(max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_any_text_gives_tokens_whose_offsets_point_into_it(kind: str) -> None:
    tokenizer = TOKENIZERS[kind]

    @MANY
    @given(ANY)
    def check(text: str) -> None:
        found = tokenizer.encode(text)
        assert ((found.ids >= 0) & (found.ids < tokenizer.vocab_size)).all()
        spans = found.offsets[found.fields == 0]
        assert (spans[:, 0] <= spans[:, 1]).all()
        assert (spans >= 0).all()
        assert (spans <= len(text)).all()
        assert (spans[1:, 0] >= spans[:-1, 0]).all()
        words = found.words[found.fields == 0]
        assert set((words[1:] - words[:-1]).tolist()) <= {0, 1}
        (fast,), _ = tokenizer.fast_ids([text], None)
        assert fast.tolist() == found.ids.tolist()

    check()


@pytest.mark.parametrize("kind", ["byte-bpe", "uncased"])
def test_what_was_decoded_encodes_to_the_same_ids(kind: str) -> None:
    tokenizer = TOKENIZERS[kind]

    @MANY
    @given(st.text(st.characters(codec="utf-8"), max_size=40))
    def check(text: str) -> None:
        once = tokenizer.encode(text).ids
        if kind == "uncased" and tokenizer.special.unk in once:
            return  # an unknown word is gone, and nothing can bring it back
        again = tokenizer.encode(tokenizer.decode(once)).ids
        # Byte pairs are exact; BERT's decoder drops spaces before punctuation, which BERT ignores.
        assert again.tolist() == once.tolist()

    check()


@MANY
@given(st.lists(ANY, max_size=6))
def test_a_batch_equals_one_by_one(texts: list[str]) -> None:
    batch = BERT.encode_batch(texts)
    assert [e.ids.tolist() for e in batch] == [BERT.encode(t).ids.tolist() for t in texts]


@MANY
@given(st.text(st.characters(codec="utf-8", max_codepoint=0x24F), max_size=40))
def test_composed_and_decomposed_text_agree_when_accents_are_stripped(text: str) -> None:
    composed, apart = (unicodedata.normalize(form, text) for form in ("NFC", "NFD"))
    assert BERT.encode(composed).ids.tolist() == BERT.encode(apart).ids.tolist()


def test_hash_seed_and_process_change_nothing() -> None:
    here = Path(__file__).parent
    code = (
        f"import sys; sys.path[:0] = [{str(here)!r}, {str(here.parents[2] / 'src')!r}]\n"
        "import tiny_vocabulary\n"
        "print(tiny_vocabulary.bert().encode('Héllo, [SEP] wörld 中').ids.tolist())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-X", "utf8", "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": "C"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "random")
    }
    assert found == {f"{tiny_vocabulary.bert().encode('Héllo, [SEP] wörld 中').ids.tolist()}\n"}


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\ud83d \ude00", "\udc80" * 50, "中\ud800"])
def test_lone_surrogates_become_replacement_characters_and_are_counted(
    text: str, caplog: pytest.LogCaptureFixture
) -> None:
    plain = "".join("\ufffd" if 0xD800 <= ord(c) <= 0xDFFF else c for c in text)
    count = sum(a != b for a, b in zip(text, plain, strict=True))
    for tokenizer in TOKENIZERS.values():
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            got = tokenizer.encode(text)
        assert f"replaced {count} lone surrogates" in caplog.text
        assert got.ids.tolist() == tokenizer.encode(plain).ids.tolist()
        assert got.offsets.tolist() == tokenizer.encode(plain).offsets.tolist()
        assert (
            tokenizer.fast_ids([text], 9)[0][0].tolist()
            == tokenizer.fast_ids([plain], 9)[0][0].tolist()
        )
