"""What every grouping promises, over every entry of the table, in English and Chinese."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from masking_cases import LANGUAGES, declared_kinds, grouping, picked, plain_rows, rows
from scipy.stats import chisquare

import bertsmith.objectives.masking.grouping as module
from bertsmith.corpus.rows import begins
from bertsmith.objectives.masking.grouping import GROUPINGS, geometric, runs, tokens, whole_words
from bertsmith.objectives.masking.masking import choose

EACH = pytest.mark.parametrize("kind", GROUPINGS)
BOTH = pytest.mark.parametrize("language", LANGUAGES)
RATES = (0.15, 0.4)


def assert_whole(units: np.ndarray, hidden: np.ndarray) -> None:
    """Of every unit all tokens are hidden or none."""
    real = units >= 0
    size = np.bincount(units[real], minlength=1)
    gone = np.bincount(units[real], weights=hidden[real], minlength=1)
    assert ((gone == 0) | (gone == size)).all()


@EACH
@BOTH
@pytest.mark.parametrize("rate", RATES)
def test_units_are_hidden_whole_and_special_tokens_never(kind, language, rate, tmp_path) -> None:
    batch = rows(language, 80)
    groups = grouping(kind, language, tmp_path)(batch)
    hidden = choose(groups, batch, rate)
    assert (groups[~batch.real] == -1).all()
    assert (groups[batch.real] >= 0).all()
    assert not hidden[~batch.real].any()
    assert_whole(groups, hidden)


@EACH
@BOTH
@pytest.mark.parametrize("rate", RATES)
def test_the_rate_is_kept_over_all_and_in_each_text(kind, language, rate, tmp_path) -> None:
    batch = rows(language, 600)
    groups = grouping(kind, language, tmp_path)(batch)
    hidden = choose(groups, batch, rate)
    assert hidden.sum() / batch.real.sum() == pytest.approx(rate, rel=0.03)
    sizes = np.bincount(groups[batch.real])
    for start, length in zip(batch.starts, batch.lengths, strict=True):
        here = slice(start, start + length)
        asked = rate * batch.real[here].sum()
        longest = sizes[groups[here][batch.real[here]]].max()
        assert abs(hidden[here].sum() - asked) < max(longest, 1)
        assert hidden[here].any()


@EACH
@BOTH
def test_the_same_seed_makes_the_same_choice_and_another_seed_another(
    kind, language, tmp_path
) -> None:
    make = grouping(kind, language, tmp_path)
    first, again, other = (
        choose(make(batch), batch, 0.15)
        for batch in (rows(language, seed=1), rows(language, seed=1), rows(language, seed=2))
    )
    assert (first == again).all()
    assert (first != other).any()


@EACH
@BOTH
def test_neighbors_in_a_batch_change_nothing(kind, language, tmp_path) -> None:
    make = grouping(kind, language, tmp_path)
    batch = rows(language, 30)
    whole = choose(make(batch), batch, 0.15)
    some = picked(batch, [17, 3, 29, 0])
    part = choose(make(some), some, 0.15)
    expected = [whole[batch.starts[n] : batch.starts[n] + batch.lengths[n]] for n in (17, 3, 29, 0)]
    assert (part == np.concatenate(expected)).all()


@EACH
@BOTH
def test_every_unit_has_the_same_chance_whatever_its_length(kind, language, tmp_path) -> None:
    batch = rows(language, 1500, size=(150, 200))
    groups = grouping(kind, language, tmp_path)(batch)
    hidden = choose(groups, batch, 0.15)
    opens = begins(groups, batch)
    sizes = np.bincount(groups[batch.real])[groups[opens]]
    for size in np.unique(sizes):
        chance = hidden[opens][sizes == size]
        if len(chance) > 1000:
            assert chance.mean() == pytest.approx(0.15, abs=4.5 * (0.13 / len(chance)) ** 0.5)


@EACH
@BOTH
def test_words_of_one_piece_are_not_the_only_ones_hidden(kind, language, tmp_path) -> None:
    batch = rows(language, 100)
    hidden = choose(grouping(kind, language, tmp_path)(batch), batch, 0.15)
    long = np.bincount(batch.words[batch.real])[batch.words[batch.real]] > 1
    assert 0.1 < hidden[batch.real][long].mean() < 0.2


def test_whole_words_take_all_pieces_in_english_and_the_words_of_the_segmenter_in_chinese() -> None:
    for language in LANGUAGES:
        batch = rows(language)
        hidden = choose(whole_words(batch), batch, 0.15)
        assert_whole(batch.words, hidden)
        assert (np.bincount(batch.words[hidden]) > 1).sum() > 20


def test_tokens_cut_through_words() -> None:
    batch = rows("english")
    hidden = choose(tokens(batch), batch, 0.15)
    torn = [
        w for w in np.unique(batch.words[batch.real]) if 0 < hidden[batch.words == w].mean() < 1
    ]
    assert len(torn) > 50


@pytest.mark.parametrize(
    ("kind", "weights"), [("span", geometric(0.2, 10)), ("ngram", [0.4, 0.3, 0.2, 0.1])]
)
@BOTH
def test_lengths_of_hidden_runs_are_distributed_as_published(
    kind, weights, language, tmp_path
) -> None:
    """In words; the last run of a text is cut by its end, so it is left out of the count."""
    batch = rows(language, 1500, size=(150, 200))
    groups = grouping(kind, language, tmp_path)(batch)
    hidden = choose(groups, batch, 0.15)
    last = np.zeros(groups.max() + 1, dtype=bool)
    ends = batch.starts + batch.sizes - 2  # the row before [SEP]
    last[groups[ends]] = True
    words = np.bincount(groups[begins(batch.words, batch)])
    drawn = np.unique(groups[hidden])
    lengths = words[drawn[~last[drawn]]]
    observed = np.bincount(lengths, minlength=len(weights) + 1)[1:]
    assert len(observed) == len(weights)
    expected = np.array(weights) / sum(weights) * observed.sum()
    assert observed.sum() > 8000
    # Runs near the end of a text are short a little more often: a hair of tolerance beside chance.
    assert np.abs(observed - expected).max() / observed.sum() < 0.012
    assert chisquare(observed, expected).pvalue > 1e-4


def test_spans_have_the_mean_length_of_the_paper() -> None:
    weights = np.array(geometric(0.2, 10))
    mean = (weights / weights.sum() * np.arange(1, 11)).sum()
    assert mean == pytest.approx(3.8, abs=0.05)


def test_runs_never_cross_special_tokens_or_texts() -> None:
    batch = plain_rows([[-1, *range(9), -1, *range(9, 20), -1], [*range(20, 30)], [30, 31]])
    groups = runs([0, 0, 1])(batch)
    assert groups.tolist()[:12] == [-1, 0, 0, 0, 1, 1, 1, 2, 2, 2, -1, 3]
    assert groups.tolist()[22:27] == [-1, 7, 7, 7, 8]
    assert groups.tolist()[-3:] == [10, 11, 11]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_rows_keep_the_promises(data) -> None:
    shapes = data.draw(st.lists(st.lists(st.integers(0, 4), max_size=25), min_size=1, max_size=6))
    word, built = 0, []
    for shape in shapes:  # 0: a special token, else a word of so many pieces
        text = []
        for size in shape:
            text += [word] * size or [-1]
            word += 1
        built.append(text)
    batch = plain_rows(built, seed=data.draw(st.integers(0, 2**32)))
    rate = data.draw(st.floats(0.01, 1.0))
    for make in (tokens, whole_words, runs(geometric(0.2, 10))):
        groups = make(batch)
        hidden = choose(groups, batch, rate)
        assert not hidden[~batch.real].any()
        for start, size in zip(batch.starts, batch.lengths, strict=True):
            here = slice(start, start + size)
            assert hidden[here].any() == batch.real[here].any()
            if rate == 1.0:
                assert (hidden[here] == batch.real[here]).all()
        assert_whole(groups, hidden)


def test_an_empty_batch_is_no_error() -> None:
    for batch in (plain_rows([]), plain_rows([[]]), plain_rows([[-1, -1]])):
        for make in (tokens, whole_words, runs([1.0])):
            assert not choose(make(batch), batch, 0.15).any()


def test_every_grouping_of_the_module_is_in_the_table() -> None:
    assert declared_kinds(module) == set(GROUPINGS)
    assert all(made.model_fields["kind"].default == name for name, made in GROUPINGS.items())
