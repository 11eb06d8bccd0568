"""Which token is read for each unit: first pieces, windows, what is left out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_tasks import row, word_tokenizer

from bertsmith.errors import TextError
from bertsmith.labeled import DataSpec, read_examples
from bertsmith.labeled.example import Tagged
from bertsmith.labeled.guess.guess_spec import guess_spec
from bertsmith.tasks.batch import task_batch
from bertsmith.tasks.feature import Feature
from bertsmith.tasks.length import LengthSettings
from bertsmith.tasks.tag.features import example_units
from bertsmith.tasks.tag.tag import Tag, run_sizes

WORDS = ["red", "##der", "##ly", "blue", "bird", "##s", ",", "a", "##a", "##b", *"北京很大"]
TOKENIZER = word_tokenizer(WORDS)
TAG = Tag(labels=("O", "B-X", "I-X"))


def features(text: str, target: Tagged | None = None, **lengths: object) -> list[Feature]:
    return TAG.features([row(0, [text], target)], TOKENIZER, LengthSettings(**lengths))


def read(feature: Feature) -> list[str]:
    return [feature.encoding.tokens[place] for place in feature.at]


def spaced(text: str) -> Tagged:
    """The words between spaces as units, all of them outside."""
    found, at = [], 0
    for word in text.split(" "):
        found.append((at, at + len(word)))
        at += len(word) + 1
    return Tagged(tuple(found), ("O",) * len(found))


def test_the_first_piece_of_each_unit_is_read() -> None:
    text = "redderly birds, blue"
    (feature,) = features(text)
    assert [text[a:b] for a, b in example_units(row(0, [text]))] == [
        "redderly",
        "birds",
        ",",
        "blue",
    ]
    assert read(feature) == ["red", "bird", ",", "blue"]
    assert feature.units.tolist() == [0, 1, 2, 3]
    assert feature.target is None


def test_a_plain_chinese_text_is_read_character_by_character() -> None:
    (feature,) = features("北京很大 blue")
    assert read(feature) == ["北", "京", "很", "大", "blue"]


def test_the_units_of_the_data_are_kept_with_their_tags() -> None:
    text = "red, blue birds"
    (feature,) = features(text, Tagged(((0, 4), (5, 15)), ("O", "B-X")))
    assert read(feature) == ["red", "blue"]
    assert feature.target.tolist() == [0, 1]


def test_units_inside_one_token_read_the_same_token() -> None:
    (feature,) = features("birds", Tagged(((0, 2), (2, 4), (4, 5)), ("B-X", "I-X", "O")))
    assert read(feature) == ["bird", "bird", "##s"]


def test_a_unit_without_a_token_is_not_read() -> None:
    text = "red \u200b blue"
    (feature,) = features(text, Tagged(((0, 3), (4, 5), (6, 10)), ("O", "B-X", "I-X")))
    assert feature.units.tolist() == [0, 2]
    assert feature.target.tolist() == [0, 2]


def test_what_is_cut_away_is_not_read() -> None:
    text = "red blue birds a red"
    (head,) = features(text, max_length=5)
    assert head.units.tolist() == [0, 1, 2]
    (tail,) = features(text, max_length=4, keep="tail")
    assert tail.units.tolist() == [3, 4]
    (both,) = features(text, max_length=5, keep="head+tail", head=1)
    assert both.units.tolist() == [0, 3, 4]


def test_only_the_first_of_several_fields_is_tagged() -> None:
    example = row(0, ["blue", "red birds"])
    (feature,) = TAG.features([example], TOKENIZER, LengthSettings())
    assert read(feature) == ["blue"]
    (feature,) = TAG.features([row(0, ["red \u200b", "red blue"])], TOKENIZER, LengthSettings())
    assert read(feature) == ["red"]
    windows = TAG.features([example], TOKENIZER, LengthSettings(max_length=6, stride=1))
    assert [one.units.tolist() for one in windows] == [[0], []]
    bare = row(0, ["", "red birds"])
    windows = TAG.features([bare], TOKENIZER, LengthSettings(max_length=5, stride=1))
    assert [one.units.tolist() for one in windows] == [[], []]


def test_a_unit_is_read_in_the_window_where_its_poorer_side_is_richest() -> None:
    text = " ".join(["red", "blue"] * 5)  # ten tokens; windows of four, two apart
    windows = features(text, max_length=6, stride=2)
    assert [one.units.tolist() for one in windows] == [[0, 1, 2], [3, 4], [5, 6], [7, 8, 9]]
    assert [one.at.tolist() for one in windows] == [[1, 2, 3], [2, 3], [2, 3], [2, 3, 4]]


def test_a_window_that_begins_inside_a_unit_does_not_read_it() -> None:
    windows = features("red redderly blue", max_length=4, stride=2)  # red red | ##der ##ly | blue
    assert [read(one) for one in windows] == [["red", "red"], [], ["blue"]]


@settings(max_examples=80, deadline=None)
@given(
    words=st.lists(st.text("ab北京\u200b,", max_size=5), max_size=12),
    room=st.integers(1, 7),
    step=st.integers(1, 7),
)
def test_every_unit_with_a_token_is_read_once_at_its_first_piece(
    words: list[str], room: int, step: int
) -> None:
    text = " ".join(words)
    target = spaced(text)
    (whole,) = features(text, target)
    windows = features(text, target, max_length=room + 2, stride=min(step, room))
    units = np.concatenate([one.units for one in windows])
    assert units.tolist() == whole.units.tolist()
    pieces = [one.encoding.offsets[one.at] for one in windows]
    np.testing.assert_array_equal(
        np.concatenate(pieces), whole.encoding.offsets[whole.at].reshape(-1, 2)
    )
    batch = task_batch(windows)
    assert len(batch.targets) == len(whole.units) == TAG.count(batch)
    assert int(run_sizes(batch).sum()) == len(whole.units)


def test_runs_end_at_gaps_and_at_examples_and_span_windows() -> None:
    long = " ".join(["red"] * 9)
    gap = "red \u200b blue a"
    late = "\u200b " * 4 + "a"  # the number of its only token follows that of the last one
    examples = [row(n, [text], spaced(text)) for n, text in enumerate((long, gap, late))]
    found = TAG.features(examples, TOKENIZER, LengthSettings(max_length=6, stride=2))
    assert len(found) > len(examples)
    batch = task_batch(found)
    assert run_sizes(batch).tolist() == [9, 1, 2, 1]
    assert batch.to("meta").units.device.type == "meta"


@pytest.mark.parametrize(
    "units", [((0, 3), (2, 5)), ((4, 6), (0, 3)), ((0, 99),), ((-1, 2),), ((3, 2),)]
)
def test_units_that_do_not_fit_the_text_are_named(units: tuple[tuple[int, int], ...]) -> None:
    with pytest.raises(TextError, match=r"rows\.tsv, line 1"):
        features("red blue", Tagged(units, ("O",) * len(units)))


def test_tags_that_do_not_fit_are_named() -> None:
    with pytest.raises(TextError, match=r"line 1: no label is called 'B-Y'; known labels: O, B-X"):
        features("red", Tagged(((0, 3),), ("B-Y",)))
    with pytest.raises(TextError, match="one tag per unit"):
        features("red", Tagged(((0, 3),), ("O", "O")))


def test_units_may_come_without_tags() -> None:
    (feature,) = features("red, blue", Tagged(((0, 4), (5, 9)), ()))
    assert feature.target is None
    assert read(feature) == ["red", "blue"]
    (empty,) = features("", Tagged((), ()))
    assert empty.target.tolist() == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("rows.conll", "red\nblue-green\n\nbird\n"),
        ("rows.jsonl", '{"tokens": ["red", "blue-green"]}\n{"tokens": ["bird"]}\n'),
    ],
)
def test_rows_without_tags_keep_the_words_of_their_file(
    tmp_path: Path, name: str, text: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    conll = name.endswith("conll")
    form = {"format": "conll", "text": (1,)} if conll else {"format": "words", "text": ("tokens",)}
    spec = guess_spec(path, given=DataSpec(task="tag", label=(), **form))
    found = list(read_examples(path, spec))
    assert [example.target for example in found] == [None, None]
    # By themselves, texts divide at signs: blue, -, green.
    assert [len(example_units(example)) for example in found] == [2, 1]
    passages = TAG.features(found, TOKENIZER, LengthSettings())
    rows = [np.zeros((len(feature.at), 3), dtype=np.float32) for feature in passages]
    assert [len(one.tags) for one in TAG.decode(rows, passages, found)] == [2, 1]
