"""The sense test: contextual vectors can pass it, static ones cannot."""

from __future__ import annotations

import numpy as np
import pytest

from bertsmith.errors import ConfigError
from bertsmith.studies.road.senses import find_occurrences, sense_score

SENTENCES = [
    ["a", "river", "bank", "here"],
    ["the", "bank", "account", "."],
    ["the", "bank", "of", "a", "river", "account"],
    ["Bank", "account", "bank", "river"],
]
NEIGHBORS = {"water": ["river"], "money": ["+account"]}


def test_occurrences_are_labeled_by_a_neighbor_and_left_out_where_two_disagree() -> None:
    found = find_occurrences(SENTENCES * 30, "bank", NEIGHBORS, most=20)
    assert [one.sense for one in found] == ["water"] * 10 + ["money"] * 10
    assert {(one.words[0], one.place) for one in found} == {("a", 2), ("the", 1), ("Bank", 0)} | {
        ("Bank", 2)
    }


def test_vectors_of_senses_pass_and_one_vector_per_word_cannot() -> None:
    found = find_occurrences(SENTENCES * 30, "bank", NEIGHBORS, most=60)
    random = np.random.default_rng(0)
    senses = np.array([one.sense == "water" for one in found])[:, None]
    vectors = random.normal(0, 0.3, (len(found), 8)) + senses
    score = sense_score("bank", found, vectors.astype(np.float32))
    assert score.passes
    assert score.accuracy > 0.9
    assert score.chance < 0.01
    assert abs(score.shuffled - 0.5) < 0.1
    static = sense_score("bank", found, np.ones((len(found), 8), dtype=np.float32))
    assert not static.passes
    assert static.accuracy <= static.majority
    noise = random.normal(size=(len(found), 8)).astype(np.float32)
    assert not sense_score("bank", found, noise).passes


def test_too_few_occurrences_are_refused() -> None:
    found = find_occurrences(SENTENCES[:2], "bank", NEIGHBORS)
    with pytest.raises(ConfigError, match="too few"):
        sense_score("bank", found, np.zeros((2, 4), dtype=np.float32))
    with pytest.raises(ConfigError, match="two senses"):
        find_occurrences(SENTENCES, "bank", {"water": ["river"]})
