"""Tokens and word starts of a corpus are exactly those of the tokenizer."""

from __future__ import annotations

import jieba
import numpy as np
import pytest
from corpus_making import bert, make
from hypothesis import given, settings
from hypothesis import strategies as st

from bertsmith.folders.vocabulary_growth import source_of
from bertsmith.text.fast_wordpiece import PlainEncoder, WordPieceEncoder, is_bert, sentence_encoder
from bertsmith.text.learn import learn_vocabulary
from bertsmith.text.safe_tokenizer import SafeTokenizer
from bertsmith.text.segment import CharacterSegmenter, JiebaSegmenter

ODD = (
    "aZé中文。, [MASK]\u0301\u200d\u00a0\u3000\x00\x7f\t\ufeff'’#ßİΣς½≠ﬁ한글กำ"
    "\u202e👩🇫豈\U00020000-_"
)
LINES = st.lists(
    st.one_of(
        st.text(alphabet=ODD, max_size=30),
        st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=20),
    ),
    max_size=6,
)
KINDS = {
    "uncased": bert(),
    "cased": bert(lowercase=False),
    "cased, accents stripped": bert(lowercase=False, strip_accents=True),
    "lower, accents kept": bert(strip_accents=False),
}


def engine_of(tokenizer) -> SafeTokenizer:
    source = source_of(tokenizer)
    return SafeTokenizer(source.state, source.controls)


ENGINES = {name: engine_of(tokenizer) for name, tokenizer in KINDS.items()}
JIEBA = JiebaSegmenter()
FAST = {name: sentence_encoder(engine, None) for name, engine in ENGINES.items()}


def assert_same(first, second) -> None:
    assert first.ids.tolist() == second.ids.tolist()
    assert first.starts.tolist() == second.starts.tolist()
    assert first.cases.tolist() == second.cases.tolist()
    assert first.lengths.tolist() == second.lengths.tolist()


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=150, deadline=None)
@given(lines=LINES)
def test_words_asked_once_give_the_tokens_of_whole_sentences(kind, lines) -> None:
    assert isinstance(FAST[kind], WordPieceEncoder)
    plain = PlainEncoder(ENGINES[kind], CharacterSegmenter())
    assert_same(FAST[kind].encode(lines), plain.encode(lines))
    ids = [pieces.ids.tolist() for pieces in ENGINES[kind].pieces(lines)]
    assert FAST[kind].encode(lines).ids.tolist() == [number for one in ids for number in one]


def test_unknown_words_are_counted_either_way() -> None:
    lines = ["the ж cat жук ж", "e\u0301 ж"]
    plain = PlainEncoder(ENGINES["uncased"], CharacterSegmenter())
    found = FAST["uncased"].encode(lines).unknown
    assert found == plain.encode(lines).unknown == {"ж": 3, "жук": 1}


def test_forgetting_words_changes_nothing(monkeypatch) -> None:
    lines = [f"word{number} the cat{number}" for number in range(50)]
    encoder = sentence_encoder(ENGINES["uncased"], None)
    before = [encoder.encode(lines[at : at + 5]) for at in range(0, 50, 5)]
    monkeypatch.setattr("bertsmith.text.fast_wordpiece.MAX_CACHED_WORDS", 10)
    again = sentence_encoder(ENGINES["uncased"], None)
    for part, at in zip(before, range(0, 50, 5), strict=True):
        assert_same(again.encode(lines[at : at + 5]), part)


def test_a_giant_word_among_others_keeps_its_place() -> None:
    lines = ["the cat", "x" * 200_000 + " cat", "the mat"]
    plain = PlainEncoder(ENGINES["uncased"], CharacterSegmenter())
    assert_same(FAST["uncased"].encode(lines), plain.encode(lines))


def test_tokenizers_that_are_not_bert_go_the_plain_way(tmp_path) -> None:
    lines = ["the cat sat on the mat, 我爱北京", "playing plays"] * 20
    for kind in ("byte-bpe", "unigram"):
        tokenizer = learn_vocabulary(lines, kind=kind, size=300)
        engine = engine_of(tokenizer)
        assert not is_bert(engine)
        path = tmp_path / f"{kind}.txt"
        path.write_text("\n".join(lines[:2]) + "\n")
        corpus, _ = make(path, tmp_path / kind, tokenizer)
        wanted = [tokenizer.encode(line) for line in lines[:2]]
        ids = np.concatenate([one.ids[one.words >= 0] for one in wanted])
        assert corpus.tokens.tolist() == ids.tolist()
    assert not is_bert(engine_of(bert().add_tokens(["[NEW]"])))


def test_word_starts_are_the_tokenizers_words(tmp_path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("playing unable cats.\n")
    corpus, _ = make(path, tmp_path / "out")
    names = [corpus.tokenizer().id_to_token(int(number)) for number in corpus.tokens]
    assert names == ["play", "##ing", "un", "##able", "cat", "##s", "."]
    assert corpus.starts_word.tolist() == [3, 0, 3, 0, 3, 0, 1]


@pytest.mark.parametrize("kind", ["wordpiece", "byte-bpe"])
def test_words_have_their_case_whatever_the_tokens_show(kind, tmp_path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("Playing iPad 北京 12 (Élan) \u00c9t\u00e9\n", encoding="utf-8")
    tokenizer = bert()
    if kind == "byte-bpe":
        tokenizer = learn_vocabulary(["the cat sat"] * 20, kind=kind, size=300)
    corpus, _ = make(path, tmp_path / "out", tokenizer)
    starts = corpus.starts_word[corpus.starts_word != 0]
    cased = starts[starts > 1]
    assert cased.tolist() == [5, 3, 5, 5]  # Playing, iPad, Élan, Été
    assert corpus.manifest["case"] == {
        "words": len(starts),
        "cased_words": 4,
        "capitals": 3,
    }


def test_chinese_words_are_jiebas_on_request(tmp_path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("我爱北京天安门 playing 你好\n")
    by_character, _ = make(path, tmp_path / "characters")
    assert by_character.starts_word.tolist() == [1] * 7 + [3, 0] + [1, 1]
    by_word, report = make(path, tmp_path / "words", segmenter="jieba")
    assert by_word.starts_word.tolist() == [1, 1, 1, 0, 1, 0, 0, 3, 0, 1, 0]
    assert by_word.manifest["segmenter"] == report.segmenter == "jieba"


class OneByOne:
    """A segmenter as a user would write it, around jieba itself."""

    def words(self, text: str) -> list[tuple[int, int]]:
        return [(start, end) for _, start, end in jieba.tokenize(text)]


@settings(max_examples=60, deadline=None)
@given(lines=st.lists(st.text(alphabet="我爱北京天安门T恤卡拉OK a1，。 ", max_size=25), max_size=4))
def test_jieba_words_are_those_of_the_tokenizer_with_a_segmenter(lines) -> None:
    fast = sentence_encoder(ENGINES["uncased"], JIEBA)
    plain = PlainEncoder(ENGINES["uncased"], OneByOne()).encode(lines)
    assert_same(fast.encode(lines), plain)
    assert_same(PlainEncoder(ENGINES["uncased"], JIEBA).encode(lines), plain)


@pytest.mark.parametrize(
    ("text", "wanted"), [("我爱北京天安门。\n", "jieba"), ("cats\n", "character")]
)
def test_auto_takes_jieba_for_chinese_text_only(tmp_path, text, wanted) -> None:
    path = tmp_path / "a.txt"
    path.write_text(text * 3)
    corpus, _ = make(path, tmp_path / "out", segmenter="auto")
    assert corpus.manifest["segmenter"] == wanted
