"""Examples from a corpus: what they hold, how often, and that seed and number decide alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from small_corpus import SmallCorpus, roberta_tokenizer, small_corpus

from bertsmith.corpus.examples import CorpusExamples, InputSettings
from bertsmith.corpus.rows import RowsBatch
from bertsmith.errors import ConfigError
from bertsmith.random_keys import hashes, key_of, shuffled, uniforms

KINDS = [
    ("segment_pair", "next_sentence"),
    ("segment_pair", "sentence_order"),
    ("segment_pair", None),
    ("sentence_pair", "next_sentence"),
    ("sentence_pair", "sentence_order"),
    ("full_sentences", None),
    ("doc_sentences", None),
]
EACH = pytest.mark.parametrize(("kind", "pair"), KINDS)
CLS, SEP = 2, 3


def inputs(corpus: SmallCorpus, kind: str, pair: str | None, **more: object) -> CorpusExamples:
    settings = {"short": 0.0 if kind == "sentence_pair" else 0.1, **more}
    documents, seed = settings.pop("documents", corpus.all), settings.pop("seed", 0)
    chosen = InputSettings(kind=kind, pair=pair, **settings)
    return CorpusExamples(corpus, documents, chosen, seed=seed)


def unused_and_repeated(made: CorpusExamples, corpus: SmallCorpus) -> tuple[int, int]:
    """Tokens that no example of the first epoch holds, and further uses of the others."""
    plan = made.plan(0)
    change = np.zeros(len(corpus.tokens) + 1, dtype=np.int32)
    np.add.at(change, plan.starts, 1)
    np.add.at(change, plan.stops, -1)
    used = int(np.count_nonzero(np.cumsum(change)[:-1]))
    return made.tokens - used, int((plan.stops - plan.starts).sum()) - used


def everything(made: CorpusExamples, epoch: int = 0) -> RowsBatch:
    return made.examples(epoch, np.arange(made.count(epoch)))


def texts(rows: RowsBatch) -> list[np.ndarray]:
    return [rows.ids[s : s + n] for s, n in zip(rows.starts, rows.lengths, strict=True)]


@EACH
def test_special_tokens_segments_and_lengths_are_in_place(kind, pair) -> None:
    made = inputs(small_corpus(60), kind, pair, max_length=64)
    rows = everything(made)
    assert rows.lengths == tuple(made.lengths(0, np.arange(made.count(0))).tolist())
    assert max(rows.lengths) <= 64
    assert ((rows.words < 0) == np.isin(rows.ids, [CLS, SEP])).all()
    for start, text in zip(rows.starts, texts(rows), strict=True):
        seps = np.flatnonzero(text == SEP)
        assert text[0] == CLS
        assert text[-1] == SEP
        assert (text[1:] != CLS).all()
        segments = rows.segments[start : start + len(text)]
        if pair or kind.endswith("pair"):
            assert len(seps) == 2
            assert segments.tolist() == [0] * (seps[0] + 1) + [1] * (len(text) - seps[0] - 1)
            assert 1 < seps[0] < len(text) - 2  # neither A nor B is empty
        else:
            assert not segments.any()
            assert (np.diff(seps) > 1).all()  # no two separators in a row
            assert kind == "full_sentences" or len(seps) == 1
    assert (rows.pair_labels is None) == (pair is None)


@EACH
def test_examples_hold_what_the_corpus_holds_in_order(kind, pair) -> None:
    """Tokens are made unique, so that each tells where it came from."""
    corpus = small_corpus(40)
    unique = SmallCorpus(
        np.arange(10, 10 + len(corpus.tokens), dtype=np.uint32),
        corpus.starts_word,
        corpus.sentences,
        corpus.documents,
        corpus.made_with,
    )
    rows = everything(inputs(unique, kind, pair, max_length=64))
    document = np.repeat(corpus.all, np.diff(corpus.sentences[corpus.documents]))
    for number, text in enumerate(texts(rows)):
        parts = [part[part > 9] - 10 for part in np.split(text, np.flatnonzero(text == SEP))]
        parts = [part for part in parts if len(part)]
        for part in parts:
            assert (np.diff(part) == 1).all()
            assert len(set(document[part])) == 1
        if pair == "next_sentence":
            a, b = parts
            if rows.pair_labels[number] == 0:
                assert b[0] == a[-1] + 1
            else:
                assert document[a[0]] != document[b[0]]
        elif pair == "sentence_order":
            a, b = parts[:: -1 if rows.pair_labels[number] else 1]
            assert b[0] == a[-1] + 1
            assert document[a[0]] == document[b[0]]
        elif kind == "full_sentences":
            own = [document[part[0]] for part in parts]
            assert len(set(own)) == len(own)
    starts = corpus.starts_word.astype(bool)
    words = rows.words[rows.real]
    places = rows.ids[rows.real] - 10
    inside = ~starts[places]  # tokens that continue a word share its number, unless cut off
    same = np.append(False, words[1:] == words[:-1])
    assert (same <= inside).all()
    assert (inside & ~same).sum() < 0.02 * len(words)
    assert (np.diff(words) >= 0).all()
    assert (np.diff(words) <= 1).all()


@EACH
@pytest.mark.parametrize("shape", [(5, 30), (1, 3), (200, 300)])
def test_every_token_is_used_about_once_an_epoch(kind, pair, shape) -> None:
    corpus = small_corpus(12 if shape[0] > 100 else 150, sentences=shape, tokens=(3, 30))
    made = inputs(corpus, kind, pair, max_length=64)
    unused, repeated = unused_and_repeated(made, corpus)
    assert len(corpus.tokens) == made.tokens
    if kind == "sentence_pair" and shape[0] == 1:  # documents of one sentence have no pair
        assert unused < 0.3 * made.tokens
    else:
        assert unused <= 0.01 * made.tokens + (0.02 * made.tokens if pair else 0)
    again = repeated / made.tokens
    if pair == "next_sentence":
        assert 0.25 < again < 0.55  # random second segments, a third of all in the long run
    elif kind == "sentence_pair":
        assert again < 0.35
    else:
        assert again <= (0.05 if kind == "segment_pair" else 0.0)


@pytest.mark.parametrize("kind", ["segment_pair", "sentence_pair"])
@pytest.mark.parametrize("pair", ["next_sentence", "sentence_order"])
def test_half_of_the_pairs_are_made_wrong(kind, pair) -> None:
    corpus = small_corpus(1000, tokens=(3, 30))
    for epoch in (0, 1):
        labels = everything(inputs(corpus, kind, pair), epoch).pair_labels
        share = labels.mean()
        assert len(labels) > 2000
        assert share == pytest.approx(0.5, abs=4 * 0.5 / len(labels) ** 0.5)


def test_labels_cannot_be_read_from_the_lengths() -> None:
    corpus = small_corpus(600, sentences=(10, 30), tokens=(3, 30))
    made = inputs(corpus, "segment_pair", "next_sentence")
    rows = everything(made)
    lengths = np.array(rows.lengths)
    right, wrong = lengths[rows.pair_labels == 0], lengths[rows.pair_labels == 1]
    assert np.median(right) == pytest.approx(np.median(wrong), rel=0.03)
    second = np.array([len(t) - np.flatnonzero(t == SEP)[0] for t in texts(rows)])
    assert second[rows.pair_labels == 0].mean() == pytest.approx(
        second[rows.pair_labels == 1].mean(), rel=0.06
    )


def test_a_tenth_of_the_examples_is_short() -> None:
    corpus = small_corpus(30, sentences=(400, 500), tokens=(3, 30))
    for short, expected in ((0.0, 0.02), (0.1, 0.1), (0.5, 0.5)):
        made = inputs(corpus, "segment_pair", "sentence_order", short=short)
        lengths = made.lengths(0, np.arange(made.count(0)))
        # A short length is drawn from all of them, so some of the short ones are long.
        assert (lengths < 100).mean() == pytest.approx(expected * 95 / 124, abs=0.035)


@EACH
def test_seed_and_epoch_decide_and_batches_do_not(kind, pair) -> None:
    corpus = small_corpus(60)
    made, again = (inputs(corpus, kind, pair, seed=3) for _ in range(2))
    whole = everything(made, 1)
    numbers = np.array([7, 2, 5])
    some = again.examples(1, numbers)  # without ever asking for epoch 0
    for place, number in enumerate(numbers):
        assert (texts(some)[place] == texts(whole)[number]).all()
        assert some.keys[place] == whole.keys[number]
        if pair:
            assert some.pair_labels[place] == whole.pair_labels[number]
    assert len(np.unique(whole.keys)) == len(whole.keys)
    other = everything(inputs(corpus, kind, pair, seed=4), 1)
    assert not np.intersect1d(other.keys, whole.keys).size
    if kind != "doc_sentences":
        assert other.lengths != whole.lengths
    assert everything(made, 0).keys[0] != whole.keys[0]


@EACH
def test_only_the_chosen_documents_are_used(kind, pair) -> None:
    corpus = small_corpus(30)
    mark = np.zeros(len(corpus.tokens), dtype=bool)
    chosen = np.array([3, 4, 11, 29])
    for number in chosen:
        first, last = corpus.sentences[corpus.documents[[number, number + 1]]]
        mark[first:last] = True
    plan = inputs(corpus, kind, pair, documents=chosen).plan(0)
    for start, stop in zip(plan.starts, plan.stops, strict=True):
        assert mark[start:stop].all()


def test_roberta_pairs_have_two_separators_between_and_one_segment() -> None:
    corpus = small_corpus(20, tokenizer=roberta_tokenizer())
    rows = everything(inputs(corpus, "segment_pair", "next_sentence"))
    text = texts(rows)[0]
    places = np.flatnonzero(rows.words[: len(text)] < 0)
    assert text[places].tolist() == [0, 2, 2, 2]
    assert places[2] == places[1] + 1
    assert not rows.segments.any()


@pytest.mark.parametrize("kind", ["full_sentences", "doc_sentences"])
def test_sentences_stay_whole_unless_they_do_not_fit(kind) -> None:
    corpus = small_corpus(50, tokens=(1, 30))
    plan = inputs(corpus, kind, None, max_length=64, short=0.0).plan(0)
    assert np.isin(plan.starts, corpus.sentences).all()
    assert np.isin(plan.stops, corpus.sentences).all()
    long = small_corpus(20, tokens=(100, 300))
    made = inputs(long, kind, None, max_length=64, short=0.0)
    assert unused_and_repeated(made, long)[0] == 0
    cuts = made.plan(0).starts
    assert long.starts_word[cuts].all()
    assert everything(made).sizes.max() <= 64


@pytest.mark.parametrize("short", [0.0, 0.5, 1.0])
def test_segments_in_order_use_every_token_however_short_examples_are(short) -> None:
    corpus = small_corpus(300, sentences=(2, 9), tokens=(2, 20))
    made = inputs(corpus, "segment_pair", "sentence_order", max_length=64, short=short)
    assert unused_and_repeated(made, corpus)[0] == 0


def test_a_word_too_long_for_an_example_is_cut_and_its_parts_are_words_of_their_own() -> None:
    corpus = small_corpus(20, tokens=(100, 200))
    corpus.starts_word[:] = 0
    corpus.starts_word[corpus.sentences[:-1]] = 1
    for kind, pair in KINDS:
        rows = everything(inputs(corpus, kind, pair, max_length=40))
        assert rows.sizes.max() <= 40
        words = rows.words[rows.breaks]
        assert len(np.unique(words)) == len(words)


def test_one_giant_document_does_not_slow_the_plan_down() -> None:
    corpus = small_corpus(2, sentences=(30_000, 30_000), tokens=(10, 20))
    for kind, pair in KINDS:
        made = inputs(corpus, kind, pair)
        assert unused_and_repeated(made, corpus)[0] < 0.01 * made.tokens


def test_what_cannot_work_is_refused() -> None:
    one = small_corpus(1)
    with pytest.raises(ConfigError, match="second document"):
        inputs(one, "segment_pair", "next_sentence").count(0)
    with pytest.raises(ConfigError, match="no text"):
        inputs(one, "full_sentences", None, documents=one.all[:0])
    with pytest.raises(ConfigError, match="0 to 0"):
        inputs(one, "full_sentences", None, documents=np.array([5]))
    with pytest.raises(ValidationError, match="max_length"):
        inputs(one, "full_sentences", None, max_length=3)
    made = inputs(one, "full_sentences", None)
    with pytest.raises(ConfigError, match="has the examples 0 to"):
        made.examples(0, np.array([made.count(0)]))
    single = small_corpus(9, sentences=(1, 1), tokens=(1, 1))
    with pytest.raises(ConfigError, match="no example of the kind"):
        inputs(single, "segment_pair", None).count(0)
    with pytest.raises(ValidationError, match="has no pairs"):
        InputSettings(kind="full_sentences", pair="next_sentence")
    with pytest.raises(ValidationError, match="set `short` to 0"):
        InputSettings(kind="sentence_pair")


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_corpus_gives_whole_examples(data) -> None:
    low = data.draw(st.integers(1, 5))
    corpus = small_corpus(
        data.draw(st.integers(2, 8)),
        sentences=(1, data.draw(st.integers(1, 12))),
        tokens=(low, low + data.draw(st.integers(0, 60))),
        seed=data.draw(st.integers(0, 99)),
    )
    kind, pair = data.draw(st.sampled_from(KINDS))
    length = data.draw(st.integers(8, 80))
    made = inputs(corpus, kind, pair, max_length=length)
    sizes = np.diff(corpus.sentences[corpus.documents])
    if kind == "sentence_pair":
        sizes = np.maximum(np.diff(corpus.documents), -(-sizes // ((length - 3) // 2)))
    if kind.endswith("pair") and sizes.max() < 2:
        with pytest.raises(ConfigError, match="no example"):
            everything(made)
        return
    rows = everything(made)
    assert max(rows.lengths) <= length
    assert sum(rows.lengths) == len(rows.ids) == len(rows.words) == len(rows.segments)
    assert ((rows.words < 0) == np.isin(rows.ids, [CLS, SEP])).all()
    plan = made.plan(0)
    assert (plan.stops > plan.starts).all()
    if not kind.endswith("pair"):
        assert unused_and_repeated(made, corpus) == (0, 0)


def test_random_numbers_are_even_and_belong_to_their_place() -> None:
    numbers = uniforms(key_of(1, "x"), np.arange(200_000))
    assert 0 <= numbers.min() < numbers.max() < 1
    assert np.histogram(numbers, 20, (0, 1))[0] == pytest.approx(10_000, rel=0.05)
    assert abs(np.corrcoef(numbers[1:], numbers[:-1])[0, 1]) < 0.01
    places = np.array([70, 3])
    assert (uniforms(key_of(1, "x"), places) == numbers[places]).all()
    assert key_of(1, 2) != key_of(2, 1)
    assert len({key_of(a, b) for a in range(50) for b in range(50)}) == 2500
    # SplitMix64 seeded with 0, as published.
    assert hashes(0, np.arange(2)).tolist() == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4]
    assert sorted(shuffled(100, 1).tolist()) == list(range(100))
    assert shuffled(100, 1).tolist() != shuffled(100, 2).tolist()
