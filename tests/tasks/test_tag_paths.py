"""Best paths and their chances against every path written out; any logits decode legally."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bertsmith.errors import ConfigError
from bertsmith.tasks.tag import paths
from bertsmith.tasks.tag.paths import Steps, best_paths
from bertsmith.tasks.tag.scheme import is_bio, labels_of, legal_steps

BIO = ("O", "B-PER", "I-PER", "B-ORG", "I-ORG")
EXTREME = st.floats(width=32, allow_nan=True, allow_infinity=True)


def random_steps(labels: tuple[str, ...], spread: float = 1.0) -> Steps:
    random = np.random.default_rng(2)
    tags = len(labels)
    shapes = (tags, (tags, tags), tags)
    learned = Steps(*(random.normal(size=shape) * spread for shape in shapes))
    return legal_steps(labels) + learned


def legal(tags: list[str]) -> bool:
    """Written apart from the code: a span goes on only where it runs."""
    open_kind = None
    for tag in tags:
        if tag[0] == "I" and tag[1:] != open_kind:
            return False
        open_kind = None if tag == "O" else tag[1:]
    return True


def enumerated(logits: np.ndarray, steps: Steps) -> tuple[tuple[int, ...], np.ndarray]:
    """The best path and the chances (U, C) of all tags."""
    weights = {}
    for path in product(range(logits.shape[1]), repeat=len(logits)):
        score = steps.start[path[0]] + steps.end[path[-1]]
        score += sum(logits[place, tag] for place, tag in enumerate(path))
        score += sum(steps.between[a, b] for a, b in pairwise(path))
        weights[path] = np.exp(score)
    total = sum(weights.values())
    chances = np.zeros(logits.shape)
    for path, weight in weights.items():
        for place, tag in enumerate(path):
            chances[place, tag] += weight / total
    return max(weights, key=lambda path: weights[path]), chances


@pytest.mark.parametrize("learned", [False, True])
def test_paths_and_chances_equal_those_of_all_paths_written_out(learned: bool) -> None:
    steps = random_steps(BIO) if learned else legal_steps(BIO)
    sizes = np.array([2, 4, 1, 3, 4])
    logits = np.random.default_rng(5).normal(size=(sizes.sum(), len(BIO))) * 2
    tags, chances = best_paths(logits, sizes, steps)
    at = 0
    for size in sizes:
        here = slice(at, at + size)
        path, every = enumerated(logits[here], steps)
        assert tuple(tags[here]) == path
        np.testing.assert_allclose(chances[here], every[range(size), path], rtol=1e-9)
        at += size


def test_the_best_path_is_not_the_best_tag_of_each_unit() -> None:
    logits = np.log(np.array([[0.5, 0.4, 0.1], [0.1, 0.1, 0.8]]))  # O, B-X, I-X
    tags, _ = best_paths(logits, np.array([2]), legal_steps(("O", "B-X", "I-X")))
    assert tags.tolist() == [1, 2]


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_logits_decode_legally(data: st.DataObject) -> None:
    kinds = data.draw(
        st.lists(st.sampled_from(["PER", "ORG", "a-b", "O"]), unique=True, max_size=3)
    )
    labels = labels_of(["O", *(f"B-{kind}" for kind in kinds)])
    sizes = np.array(data.draw(st.lists(st.integers(1, 7), max_size=5)), dtype=np.int64)
    logits = data.draw(arrays(np.float32, (int(sizes.sum()), len(labels)), elements=EXTREME))
    tags, chances = best_paths(logits, sizes, random_steps(labels))
    assert ((chances >= 0) & (chances <= 1 + 1e-9)).all()
    for part in np.split(tags, np.cumsum(sizes)[:-1]) if len(sizes) else []:
        assert legal([labels[tag] for tag in part])


def test_blocks_of_any_size_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = np.random.default_rng(3).integers(0, 12, 80)
    logits = np.random.default_rng(4).normal(size=(sizes.sum(), len(BIO)))
    whole = best_paths(logits, sizes, random_steps(BIO))
    for wide, deep in ((1, 1), (75, 1 << 24), (1 << 18, 130)):
        monkeypatch.setattr(paths, "WIDE", wide)
        monkeypatch.setattr(paths, "DEEP", deep)
        parts = best_paths(logits, sizes, random_steps(BIO))
        np.testing.assert_array_equal(parts[0], whole[0])
        np.testing.assert_allclose(parts[1], whole[1], rtol=1e-12)


def test_chances_of_long_sequences_do_not_vanish() -> None:
    logits = np.random.default_rng(6).normal(size=(3_000, len(BIO))) * 40
    _, chances = best_paths(logits, np.array([3_000]), random_steps(BIO))
    assert np.isfinite(chances).all()
    assert chances.mean() > 0.5
    steep = random_steps(BIO, spread=1e4)
    _, chances = best_paths(logits, np.array([3_000]), steep)
    assert (chances > 0).all()


def test_labels_are_complete_and_in_order() -> None:
    assert labels_of(["I-b", "O", "B-a"]) == ("O", "B-a", "I-a", "B-b", "I-b")
    assert labels_of(["B", "I", "B"]) == ("B", "I")
    assert labels_of(["VERB", "NOUN", "O"]) == ("NOUN", "O", "VERB")
    assert labels_of(["O"]) == ("O",)


def test_only_bio_labels_bind_each_other() -> None:
    assert is_bio(BIO)
    assert is_bio(("B", "I"))
    for labels in (("NOUN", "VERB", "I"), ("B-PER", "S-PER"), ("B-",)):
        assert not is_bio(labels)
        assert np.isfinite(legal_steps(labels).between).all()


def test_labels_that_no_sequence_can_begin_with_are_refused() -> None:
    with pytest.raises(ConfigError, match="B-KIND"):
        legal_steps(("I-PER",))
