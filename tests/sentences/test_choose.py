"""The choice of vectors on the user's pairs: one pass, paired bootstrap, ties to the simplest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from folder_models import tiny_model, tiny_tokenizer

import bertsmith
from bertsmith.errors import InputFileError
from bertsmith.folders.write import save_model
from bertsmith.models.sentence_spec import SentenceSettings
from bertsmith.runtime.embedder import Embedder
from bertsmith.runtime.loading import LoadedModel
from bertsmith.sentences.pair_measure import ScoredPairs, change
from bertsmith.sentences.transform.flow import FlowSettings
from bertsmith.sentences.tune.candidates import Candidate
from bertsmith.sentences.tune.layer_vectors import layer_vectors
from bertsmith.sentences.tune.tune import TuneSettings, tune
from bertsmith.sentences.tune.without_labels import hints, iso_score, tune_without_labels

LETTERS = "abcdefghijklm字词"
QUICK = TuneSettings(flow=FlowSettings(epochs=1, hidden=4))


def some_texts(count: int) -> list[str]:
    random = np.random.default_rng(5)
    return [" ".join(random.choice(list(LETTERS), random.integers(2, 9))) for _ in range(count)]


@pytest.fixture
def model(tmp_path: Path) -> LoadedModel:
    save_model(tiny_model(), tiny_tokenizer(), tmp_path / "m", sentence=SentenceSettings())
    return bertsmith.load(tmp_path / "m", precision="fp32")


def pairs_like(model: LoadedModel, settings: SentenceSettings, noise: float = 0.0) -> ScoredPairs:
    """Pairs whose scores are the cosines that these settings give."""
    texts = some_texts(240)
    vectors = Embedder(model.host, settings).encode(texts)
    rows = list(zip(texts[::2], texts[1::2], strict=True))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    gold = (unit[::2] * unit[1::2]).sum(axis=1).astype(np.float64)
    gold += noise * np.random.default_rng(1).standard_normal(len(gold))
    return ScoredPairs.of(rows, gold, labeled=False, source="pairs")


def test_one_pass_gives_what_each_layer_and_pooling_gives(model: LoadedModel) -> None:
    texts = some_texts(20)
    with layer_vectors(model.host, model, texts, ("mean", "first", "max")) as kept:
        for layers, mix in [((2,), (0, 0, 1)), ((0,), (1, 0, 0)), ((1, 2), (0, 1, 1))]:
            for pooling in ("mean", "first"):
                settings = SentenceSettings(pooling=(pooling,), layer_mix=tuple(map(float, mix)))
                expected = Embedder(model.host, settings).encode(texts)
                np.testing.assert_allclose(kept.of(layers, pooling), expected, atol=1e-5)
        plain = SentenceSettings(pooling=("max",))
        expected = Embedder(model.host, plain).encode(texts)
        np.testing.assert_allclose(kept.of((2,), "max"), expected, atol=1e-5)


def test_the_way_that_scores_were_made_wins(model: LoadedModel) -> None:
    made = SentenceSettings(pooling=("first",), layer_mix=(0.0, 1.0, 0.0))
    found = tune(model, pairs_like(model, made), QUICK)
    assert found.winner.candidate.name == "layer 1, first"
    assert found.settings == replace(model.settings, pooling=("first",), layer_mix=(0, 1, 0))
    assert found.winner.score == pytest.approx(1.0)
    assert found.gain.low > 0
    names = [one.candidate.name for one in found.tried]
    assert len(names) == len(set(names))
    for expected in ("as the folder has it", "layers 1 + 2, mean", "embeddings, max"):
        assert expected in names
    assert any("whitening to" in name for name in names)
    assert sum("flow to" in name for name in names) == QUICK.flows


def test_ties_go_to_the_simplest(model: LoadedModel) -> None:
    found = tune(model, pairs_like(model, SentenceSettings(), noise=3.0), QUICK)
    assert found.best.score >= found.winner.score
    assert found.winner.candidate.own
    assert found.lead.low <= 0 <= found.lead.high
    assert found.settings == model.settings


def test_simplicity_has_an_order() -> None:
    def at(**changes: object) -> Candidate:
        given = {"layers": (6,), "pooling": "mean", "dimension": 384, **changes}
        return Candidate(**given)  # type: ignore[arg-type]

    ordered = [
        at(own=True),
        at(),
        at(pooling="first"),
        at(layers=(4,)),
        at(layers=(1, 6)),
        at(correction="whitening", dimension=128),
        at(correction="whitening", dimension=256),
        at(correction="whitening", layers=(3,)),
        at(correction="flow"),
    ]
    keys = [one.complexity(6, "mean") for one in ordered]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)


def test_a_corrected_winner_is_saved_as_it_was_scored(model: LoadedModel, tmp_path: Path) -> None:
    pairs = pairs_like(model, SentenceSettings())
    found = tune(model, pairs, QUICK, texts=some_texts(300))
    for kind in ("whitening to", "flow to"):
        one = next(one for one in found.tried if kind in one.candidate.name)
        settings = one.candidate.settings(model.settings, found.layers)
        again = Embedder(model.host, settings)
        assert pairs.score(again.encode(list(pairs.texts))) == pytest.approx(one.score, abs=2e-3)
        assert settings.normalize


def test_labels_are_measured_by_average_precision() -> None:
    rows = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]
    pairs = ScoredPairs.of(rows, np.array([1.0, 0, 1, 0]), labeled=True, source="x")
    assert pairs.measure == "average precision"
    vectors = np.array([[1.0, 0], [1, 0.1], [0, 1], [1, 0.2]])
    assert pairs.score(vectors) == 1.0
    with pytest.raises(InputFileError, match="labels of one class only"):
        ScoredPairs.of(rows, np.ones(4), labeled=True, source="x")
    with pytest.raises(InputFileError, match="the same score in every row"):
        ScoredPairs.of(rows, np.ones(4), labeled=False, source="x")


def test_a_change_is_said_to_help_or_to_harm() -> None:
    random = np.random.default_rng(0)
    good = random.standard_normal((400, 8))
    rows = [(str(2 * i), str(2 * i + 1)) for i in range(200)]
    unit = good / np.linalg.norm(good, axis=1, keepdims=True)
    gold = (unit[::2] * unit[1::2]).sum(axis=1)
    pairs = ScoredPairs.of(rows, gold, labeled=False, source="x")
    order = [int(text) for text in pairs.texts]
    good, bad = good[order], random.standard_normal((400, 8))
    assert change(pairs, bad, good).verdict == "helped"
    assert change(pairs, good, bad).verdict == "harmed"
    assert change(pairs, good, 2 * good).verdict == "made no clear difference"


def test_hints_are_their_formulas() -> None:
    assert iso_score(np.ones(10)) == pytest.approx(1.0)
    assert iso_score(np.eye(10)[0]) == pytest.approx(0.0, abs=1e-9)
    one = hints(np.array([[1.0, 0], [0, 1.0]]), (np.eye(2), np.eye(2)[::-1]))
    assert one.alignment == pytest.approx(2.0)
    assert one.uniformity == pytest.approx(-4.0)
    assert one.mean_cosine == pytest.approx(0.0)


def test_without_labels_there_are_hints_for_partners_and_for_dropout(model: LoadedModel) -> None:
    texts = some_texts(60)
    alone = tune_without_labels(model, texts, QUICK)
    assert all(np.isfinite(one.hints.alignment) for one in alone)
    together = tune_without_labels(
        model, [], QUICK, partners=list(zip(texts[::2], texts[1::2], strict=True))
    )
    plain = {one.candidate.name: one.hints for one in together}
    white = next(name for name in plain if name.startswith("layer 2, mean, whitening"))
    assert plain[white].uniformity < plain["layer 2, mean"].uniformity
    assert not model.model.training
    assert torch.equal(torch.from_numpy(model.encode("a b")), torch.from_numpy(model.encode("a b")))
