"""Text of tokens, and streams: what is given out never changes, and all of it is given out."""

from __future__ import annotations

import random

import pytest
from toy_writers import TableWriter, letter_tokenizer

from bertsmith.errors import ConfigError
from bertsmith.folders.generation import GenerationDefaults
from bertsmith.runtime.generation.generator import TextGenerator
from bertsmith.runtime.generation.options import GenerationOptions
from bertsmith.runtime.generation.stream import Spelling, TextStream, certain
from bertsmith.text.learn import learn_vocabulary
from bertsmith.text.tokenizer import Tokenizer

TEXTS = [
    "the film was good , and 电影很好。 naïve 🙂 end",
    "我们 go home 今天!",
    "don't stop . now",
]


@pytest.fixture(scope="module", params=["wordpiece", "byte-bpe", "unigram"])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return learn_vocabulary(TEXTS * 20, size=350, kind=request.param)


@pytest.mark.parametrize("text", TEXTS)
def test_pieces_of_a_stream_are_the_text(text: str, tokenizer: Tokenizer) -> None:
    ids = tokenizer.bare().encode(text).ids.tolist()
    for split in range(len(ids)):
        before, new = ids[:split], ids[split:]
        spelling = Spelling(tokenizer, before)
        shown = TextStream(spelling)
        pieces = [shown.add(new[: n + 1]) for n in range(len(new))]
        pieces.append(shown.finish(new))
        assert "".join(pieces) == spelling.text(new)
        assert "\ufffd" not in "".join(pieces[:-1])


def test_random_tokens_stream_without_change(tokenizer: Tokenizer) -> None:
    rng = random.Random(1)
    for _ in range(200):
        ids = rng.choices(range(tokenizer.vocab_size), k=12)
        shown = TextStream(Spelling(tokenizer))
        given = "".join(shown.add(ids[: n + 1]) for n in range(len(ids))) + shown.finish(ids)
        assert given == Spelling(tokenizer).text(ids)


def test_words_are_given_out_whole_and_chinese_characters_one_by_one() -> None:
    assert certain("the fil") == "the"
    assert certain("the film ") == "the film"
    assert certain("fil") == ""
    assert certain("电影") == "电影"
    assert certain("电影 fil") == "电影"
    assert certain("good 电\ufffd") == "good 电"


def test_chinese_is_written_without_spaces_by_wordpiece() -> None:
    tokenizer = learn_vocabulary(TEXTS * 20, size=350, kind="wordpiece")
    ids = tokenizer.bare().encode("我们go home 今天").ids.tolist()
    assert Spelling(tokenizer).text(ids) == "我们 go home 今天"


def test_a_continued_word_has_no_space() -> None:
    files = {"vocab.txt": b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nplay\n##ing\nball"}
    tokenizer = Tokenizer.from_files(files)
    assert Spelling(tokenizer, [2, 5]).text([6, 7]) == "ing ball"


@pytest.mark.parametrize("sample", [False, True])
def test_a_stream_equals_the_answer(sample: bool) -> None:
    made = TextGenerator(
        TableWriter(40, seed=2, causal=True),
        letter_tokenizer(40),
        GenerationDefaults(ends=(3,)),
        continues=True,
    )
    options = GenerationOptions(max_new=20, sample=sample)
    for text in ("waa", "wab wac"):
        pieces = list(made.stream(text, options))
        assert "".join(pieces) == made.generate([text], options)[0].text
    assert len(pieces) > 1


def test_beams_are_not_streamed() -> None:
    tokenizer = letter_tokenizer(40)
    made = TextGenerator(TableWriter(40), tokenizer, GenerationDefaults(ends=(3,)))
    with pytest.raises(ConfigError, match="--beams 1"):
        made.stream("waa", GenerationOptions(beams=2))
    with pytest.raises(ConfigError, match="--answers 1"):
        made.stream("waa", GenerationOptions(sample=True, answers=2))
    own = TextGenerator(TableWriter(40), tokenizer, GenerationDefaults(ends=(3,), beams=4))
    with pytest.raises(ConfigError, match=r"generation_config\.json"):
        own.stream("waa")
