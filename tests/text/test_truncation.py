"""What is cut, what is kept, and that the numbers add up."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as RustTokenizer

from bertsmith.errors import ConfigError, TextError, TooLongError
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.text.truncation import FieldBudgets, Truncation, Windows, ends, shares

TEXT = "he likes the cat on a mat"  # 7 tokens


def body(encoding) -> list[str]:
    return [t for t, f in zip(encoding.tokens, encoding.fields, strict=True) if f >= 0]


@pytest.mark.parametrize(
    ("setting", "kept"),
    [
        (Truncation(max_length=5), "he likes the"),
        (Truncation(max_length=5, keep="tail"), "on a mat"),
        (Truncation(max_length=5, keep="head+tail", head=1), "he a mat"),
        (Truncation(max_length=5, keep="head+tail", head=9), "he likes the"),
        (Truncation(max_length=6, keep="head+tail"), "he on a mat"),
        (Truncation(max_length=2), ""),
        (Truncation(max_length=9), TEXT),
        (Truncation(), TEXT),
    ],
)
def test_the_end_asked_for_is_kept(tokenizers, setting, kept) -> None:
    encoding = tokenizers["uncased"].encode(TEXT, truncation=setting)
    assert body(encoding) == kept.split()
    assert encoding.cut == (7 - len(kept.split()),)
    assert encoding.total_cut == 7 - len(kept.split())
    for (start, end), token in zip(encoding.offsets[1:-1], kept.split(), strict=True):
        assert TEXT[start:end] == token


def test_each_field_has_its_budget(tokenizers) -> None:
    setting = FieldBudgets(budgets=(1, None, 2))
    encoding = tokenizers["uncased"].encode_fields(
        ["he likes", TEXT, "the cat sat"], truncation=setting
    )
    assert body(encoding) == ["he", *TEXT.split(), "the", "cat"]
    assert encoding.cut == (1, 0, 1)
    both = FieldBudgets(budgets=(2, 7, 3), max_length=10)
    assert (
        len(tokenizers["uncased"].encode_fields(["he likes", TEXT, "the cat sat"], truncation=both))
        == 10
    )
    with pytest.raises(ConfigError, match="2 budgets were given for 1 fields"):
        tokenizers["uncased"].encode("a", truncation=FieldBudgets(budgets=(1, 2)))


def test_strict_names_the_numbers(tokenizers) -> None:
    with pytest.raises(TooLongError, match=r"7 tokens and 2 special tokens.*max_length 8.*keep 6"):
        tokenizers["uncased"].encode(TEXT, truncation=Truncation(max_length=8, strict=True))
    assert tokenizers["uncased"].encode(TEXT, truncation=Truncation(max_length=9, strict=True))


@pytest.mark.parametrize("keep", ["head", "tail"])
def test_pairs_are_cut_as_the_reference_cuts_them(tokenizer: Tokenizer, keep) -> None:
    rust = RustTokenizer.from_str(tokenizer._safe_tokenizer.literal.to_str())
    rng = random.Random(3)
    specials = len(tokenizer.encode("", ""))
    for _ in range(300):
        texts = [" ".join(rng.choices(TEXT.split(), k=rng.randint(0, 12))) for _ in range(2)]
        longest = rng.randint(specials + 1, 26)
        direction = "right" if keep == "head" else "left"
        rust.enable_truncation(longest, strategy="longest_first", direction=direction)
        expected = rust.encode(*texts)
        got = tokenizer.encode(*texts, truncation=Truncation(max_length=longest, keep=keep))
        assert got.ids.tolist() == expected.ids
        assert got.segments.tolist() == expected.type_ids
        assert got.offsets.tolist() == [list(span) for span in expected.offsets]


@settings(max_examples=200)
@given(st.lists(st.integers(0, 50), min_size=1, max_size=4), st.integers(0, 120))
def test_shares_use_all_room_and_never_more(totals: list[int], room: int) -> None:
    kept = shares(totals, room)
    assert sum(kept) == min(sum(totals), room)
    assert all(0 <= k <= t for k, t in zip(kept, totals, strict=True))
    cut = [k for k, t in zip(kept, totals, strict=True) if k < t]
    assert max(cut, default=0) - min(cut, default=0) <= 1  # whoever is cut is cut to one height


@given(st.sampled_from(["head", "tail", "head+tail"]), st.integers(0, 600))
def test_the_two_ends_add_up(keep, count) -> None:
    assert sum(ends(keep, None, count)) == count


def test_windows_are_those_of_the_reference(tokenizers) -> None:
    bert = tokenizers["uncased"]
    rust = RustTokenizer.from_str(bert._safe_tokenizer.literal.to_str())
    for count in range(1, 30):
        text = " ".join(random.Random(count).choices(TEXT.split(), k=count))
        rust.enable_truncation(8, stride=6 - 4)
        first = rust.encode(text)
        expected = [first.ids, *(more.ids for more in first.overflowing)]
        got = [w.ids.tolist() for w in bert.windows(text, windows=Windows(length=8, stride=4))]
        # The last window of ours is as full as the others; the reference lets it run short.
        assert got[:-1] == expected[:-1]
        assert len(got) == len(expected)
        assert (
            got[-1][-1 - min(6, count) : -1]
            == bert.encode(text).ids.tolist()[-1 - min(6, count) : -1]
        )


def test_windows_over_a_pair_repeat_the_first_field(tokenizers) -> None:
    found = tokenizers["uncased"].windows("he likes", TEXT, windows=Windows(length=8, stride=2))
    assert [body(w) for w in found] == [
        ["he", "likes", "he", "likes", "the"],
        ["he", "likes", "the", "cat", "on"],
        ["he", "likes", "on", "a", "mat"],
    ]
    covered = {
        tuple(span)
        for w in found
        for span, f in zip(w.offsets.tolist(), w.fields, strict=True)
        if f == 1
    }
    assert len(covered) == 7


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_length": 0},
        {"max_length": -1},
        {"max_length": 1.5},
        {"max_length": True},
        {"keep": "middle"},
        {"head": 3},
        {"keep": "head+tail", "head": -1},
    ],
)
def test_impossible_settings_are_refused(wrong) -> None:
    with pytest.raises(ConfigError):
        Truncation(**wrong)


def test_limits_without_room_are_refused(tokenizers) -> None:
    bert = tokenizers["uncased"]
    with pytest.raises(TextError, match="smaller than the 3 special tokens"):
        bert.encode("a", "b", truncation=Truncation(max_length=2))
    with pytest.raises(ConfigError, match="no room"):
        bert.windows(TEXT, windows=Windows(length=2, stride=1))
    with pytest.raises(ConfigError, match="skip tokens"):
        bert.windows(TEXT, windows=Windows(length=5, stride=4))
    with pytest.raises(ConfigError):
        Windows(length=5, stride=0)
    with pytest.raises(ConfigError):
        FieldBudgets(budgets=())
