"""Noises: what stays, how much goes, how long spans are, and that no neighbor changes any of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from masking_cases import LANGUAGES, declared_kinds, picked, plain_rows, rows, tokenizer
from toy_corpus import toy_corpus

from bertsmith.corpus.examples import CorpusExamples, InputSettings
from bertsmith.corpus.rows import RowsBatch, begins
from bertsmith.corpus.shards import open_corpus
from bertsmith.errors import ConfigError
from bertsmith.objectives.noise import deletion, infilling, rotation, shuffle, token_masking
from bertsmith.objectives.noise.infilling import poisson
from bertsmith.objectives.noise.noised import Noised
from bertsmith.objectives.noise.noises import NOISES, noising

MASK = 4
EACH = pytest.mark.parametrize("kind", NOISES)
BOTH = pytest.mark.parametrize("language", LANGUAGES)
MIXES = [
    ("permutation", "infilling"),
    ("infilling", "permutation", "rotation"),
    ("deletion", "masking"),
    ("masking", "infilling", "deletion"),
    ("rotation", "infilling", "infilling"),
]


def with_sentences(batch: RowsBatch, every: int = 7) -> RowsBatch:
    """Sentences of so many words."""
    numbers = np.where(batch.real, batch.words // every, -1).astype(np.int64)
    return replace(batch, sentences=numbers)


def some(language: str, count: int = 30, seed: int = 0) -> RowsBatch:
    return with_sentences(rows(language, count, seed=seed))


def noise(*kinds: str, language: str = "english", **more: object):
    settings = [NOISES[kind].model_validate({"kind": kind, **more}) for kind in kinds]
    return noising(settings, tokenizer(language))


def long_text(words: int, count: int = 20) -> RowsBatch:
    texts, at = [], 0
    for _ in range(count):
        texts.append([-1, *range(at, at + words), -1])
        at += words
    return plain_rows(texts)


def split(noised: Noised) -> list[tuple[list[int], list[int]]]:
    """Ids and origins of each text, origins counted in the whole batch."""
    ends = np.cumsum(noised.lengths)
    parts = zip(np.split(noised.ids, ends[:-1]), np.split(noised.origin, ends[:-1]), strict=True)
    return [(ids.tolist(), origin.tolist()) for ids, origin in parts]


def words_hidden(batch: RowsBatch, noised: Noised) -> np.ndarray:
    """(B,) how many words of each text are gone."""
    kept = np.zeros(len(batch.ids), dtype=bool)
    kept[noised.origin[noised.origin >= 0]] = True
    first = begins(batch.words, batch)
    return np.bincount(batch.texts[first & ~kept], minlength=len(batch.lengths))


def test_the_table_names_every_noise() -> None:
    modules = (deletion, infilling, rotation, shuffle, token_masking)
    assert {kind for module in modules for kind in declared_kinds(module)} == set(NOISES)
    assert all(settings().kind == kind for kind, settings in NOISES.items())


@BOTH
@pytest.mark.parametrize("kinds", [*((kind,) for kind in NOISES), *MIXES])
def test_tokens_are_those_of_their_origin_and_ends_stay(kinds, language) -> None:
    batch = some(language)
    noised = noise(*kinds, language=language)(batch)
    real = noised.origin >= 0
    assert (noised.ids[real] == batch.ids[noised.origin[real]]).all()
    assert (noised.ids[~real] == MASK).all()
    assert len(np.unique(noised.origin[real])) == real.sum()  # nothing comes twice
    assert (batch.texts[noised.near] == np.repeat(np.arange(30), noised.lengths)).all()
    for number, (ids, origin) in enumerate(split(noised)):
        start, size = batch.starts[number], batch.sizes[number]
        assert len(ids) <= size
        assert origin[0] == start
        assert origin[-1] == start + size - 1
    assert not np.array_equal(noised.ids, batch.ids)


@BOTH
@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("kind", ["masking", "deletion", "infilling"])
def test_the_rate_is_exact_to_one_unit_in_every_text(kind, rate, language) -> None:
    batch = some(language, 60)
    noised = noise(kind, language=language, rate=rate)(batch)
    words = np.bincount(batch.texts[begins(batch.words, batch)])
    away = np.abs(words_hidden(batch, noised) - rate * words)
    assert away.max() < (1.0 if kind != "infilling" else 14.0)
    assert away.mean() < (0.6 if kind != "infilling" else 3.0)
    total = words_hidden(batch, noised).sum() / words.sum()
    assert total == pytest.approx(rate, abs=0.004 if kind != "infilling" else 0.02)


@BOTH
def test_masking_shows_one_mask_per_word_and_deletion_none(language) -> None:
    batch = some(language)
    masked = noise("masking", language=language)(batch)
    assert (masked.origin < 0).sum() == words_hidden(batch, masked).sum()
    deleted = noise("deletion", language=language)(batch)
    assert (deleted.origin >= 0).all()
    kept = [np.diff(origin) for _, origin in split(deleted)]
    assert all((gaps > 0).all() for gaps in kept)  # the order stays
    assert any((gaps > 1).any() for gaps in kept)
    tokens = noise("masking", language=language, unit="token")(batch)
    assert tokens.lengths == batch.lengths


def span_lengths(batch: RowsBatch, noised: Noised) -> np.ndarray:
    """Words behind each mask, for rows where every token is a word."""
    masks = np.flatnonzero(noised.origin < 0)
    following = np.append(noised.near, len(batch.ids))[masks + 1]
    return following - noised.near[masks]


@pytest.mark.parametrize("mean", [2.0, 3.0, 6.0])
def test_span_lengths_are_poisson_zeros_included(mean) -> None:
    batch = long_text(4000)
    noised = noise("infilling", mean=mean)(batch)
    lengths = span_lengths(batch, noised)
    shares = np.diff(np.append(0.0, poisson(mean)))
    top = int(np.flatnonzero(shares * len(lengths) >= 8)[-1])  # longer ones are counted with it
    found = np.bincount(np.minimum(lengths, top), minlength=top + 1)
    expected = len(lengths) * np.append(shares[:top], shares[top:].sum())
    square = float(((found - expected) ** 2 / expected).sum())
    assert len(lengths) > 3000
    cube = 2 / (9 * top)
    assert square < top * (1 - cube + 3.09 * cube**0.5) ** 3  # 99.9 % of chi-square
    assert found[0] > 5


def test_a_mask_of_no_words_removes_nothing_and_no_text_grows() -> None:
    batch = long_text(500)
    noised = noise("infilling")(batch)
    lengths = span_lengths(batch, noised)
    at = np.flatnonzero(noised.origin < 0)[lengths == 0]
    following = noised.origin[at + 1]
    assert len(at) > 20
    whole = following >= 0  # the word it was put before stands behind it
    assert (following[whole] == noised.near[at][whole]).all()
    small = long_text(3, 500)
    tiny = noise("infilling", mean=0.5, rate=1.0)(small)
    assert (np.array(tiny.lengths) <= small.sizes).all()
    assert (span_lengths(small, tiny) == 0).any()


@BOTH
def test_permutation_moves_whole_sentences_to_every_place(language) -> None:
    batch = some(language, 200)
    noised = noise("permutation", language=language)(batch)
    assert noised.lengths == batch.lengths
    assert sorted(noised.origin.tolist()) == list(range(len(batch.ids)))
    sentence = batch.sentences[noised.origin]
    runs = 1 + int((np.diff(sentence) != 0).sum())
    assert runs == 1 + int((np.diff(batch.sentences) != 0).sum())  # none is torn
    inside = np.diff(noised.origin)[np.diff(sentence) == 0]
    assert (inside == 1).all()
    first = [origin[1] - batch.starts[number] for number, (_, origin) in enumerate(split(noised))]
    assert len(set(first)) > 5


def test_a_share_of_the_sentences_moves() -> None:
    batch = with_sentences(long_text(70))
    noised = noise("permutation", rate=0.3)(batch)
    for number, (_, origin) in enumerate(split(noised)):
        places = np.array(origin[1:-1:7]) - batch.starts[number] - 1
        assert (places != np.arange(0, 70, 7)).sum() <= 3  # of ten sentences


def test_rotation_starts_at_every_word_and_keeps_the_order() -> None:
    batch = long_text(9, 400)
    noised = noise("rotation")(batch)
    assert sorted(noised.origin.tolist()) == list(range(len(batch.ids)))
    starts = []
    for number, (_, origin) in enumerate(split(noised)):
        places = np.array(origin[1:-1]) - batch.starts[number] - 1
        assert ((places - places[0]) % 9 == np.arange(9)).all()
        starts.append(int(places[0]))
    found = np.bincount(starts, minlength=9)
    assert found[0] == 0
    assert ((found[1:] - 50) ** 2 / 50).sum() < 30
    half = noise("rotation", rate=0.5)(batch)
    still = [origin[1] == batch.starts[n] + 1 for n, (_, origin) in enumerate(split(half))]
    assert 0.4 < np.mean(still) < 0.6


def test_words_are_not_torn_by_rotation() -> None:
    batch = some("english")
    noised = noise("rotation")(batch)
    words = batch.words[noised.origin]
    assert (np.diff(words) != 0).sum() <= (np.diff(batch.words) != 0).sum() + 30


@BOTH
@pytest.mark.parametrize("kinds", [*((kind,) for kind in NOISES), *MIXES])
def test_a_text_is_noised_alike_in_every_batch(kinds, language) -> None:
    batch = some(language)
    whole = split(noise(*kinds, language=language)(batch))
    numbers = [17, 3, 29, 4]
    few = picked(batch, numbers)
    few = replace(
        few,
        sentences=np.concatenate(
            [batch.sentences[batch.starts[n] : batch.starts[n] + batch.sizes[n]] for n in numbers]
        ),
    )
    again = split(noise(*kinds, language=language)(few))
    for place, number in enumerate(numbers):
        assert again[place][0] == whole[number][0]
    other = some(language, seed=1)
    assert split(noise(*kinds, language=language)(other)) != whole


def test_the_same_noise_twice_draws_other_numbers() -> None:
    batch = long_text(300, 5)
    once = noise("masking")(batch)
    twice = noise("masking", "masking")(batch)
    masks = (twice.origin < 0).sum()
    assert masks == pytest.approx((once.origin < 0).sum() * 1.85, rel=0.1)


@pytest.mark.parametrize("chinese", [False, True])
def test_one_and_two_ranks_noise_alike_and_sentences_are_the_corpus_s(chinese, tmp_path) -> None:
    corpus = open_corpus(toy_corpus(tmp_path, chinese=chinese))
    examples = CorpusExamples(
        corpus, np.arange(20), InputSettings(kind="doc_sentences", max_length=64)
    )
    settings = [NOISES[kind]() for kind in ("permutation", "infilling", "deletion")]
    made = noising(settings, corpus.tokenizer())
    numbers = np.arange(min(examples.count(0), 16))
    batch = examples.examples(0, numbers)
    stop = corpus.tokenizer().token_to_id("。" if chinese else ".")
    ends = (
        np.append(np.diff(batch.sentences) != 0, False)
        & batch.real
        & np.append(batch.real[1:], False)
    )
    assert (batch.ids[ends] == stop).all()
    assert ends.sum() == (batch.ids[:-1] == stop)[batch.real[1:]].sum()
    whole = [ids for ids, _ in split(made(batch))]
    halves = [made(examples.examples(0, part)) for part in np.array_split(numbers, 2)]
    assert [ids for half in halves for ids, _ in split(half)] == whole


def test_what_cannot_be_done_is_refused() -> None:
    with pytest.raises(ConfigError, match="where sentences begin"):
        noise("permutation")(rows("english", 2))
    with pytest.raises(ConfigError, match="at least one noise"):
        noising([], tokenizer())


def test_a_text_without_special_tokens_is_never_emptied() -> None:
    bare = plain_rows([list(range(5)), list(range(5, 8))])
    noised = noise("deletion", rate=1.0)(bare)
    assert noised.lengths == (1, 1)
