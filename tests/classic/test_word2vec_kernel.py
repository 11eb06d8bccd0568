"""The kernels and the torch engine step by step against plain loops in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from word2vec_reference import MODES, reference_window, text_stream

from bertsmith.classic.word2vec import native
from bertsmith.classic.word2vec.engines import WORD_PROBES, choose_engine
from bertsmith.classic.word2vec.native import WORD_TIERS, NativeWordEngine
from bertsmith.classic.word2vec.probe import traced_windows
from bertsmith.classic.word2vec.settings import Word2VecSettings
from bertsmith.classic.word2vec.tables import (
    Tables,
    WordWeights,
    alias_table,
    huffman_tree,
    keep_thresholds,
    noise_shares,
    text_pieces,
)
from bertsmith.classic.word2vec.torch_engine import TorchWordEngine, train_step
from bertsmith.errors import HardwareError
from bertsmith.hardware.report import cached


@pytest.fixture(scope="module", params=["avx512", "avx2"])
def tier(request: pytest.FixtureRequest) -> str:
    try:
        return choose_engine(request.param)
    except HardwareError as missing:
        pytest.skip(str(missing))


def trained(
    tier: str, settings: Word2VecSettings, pieces: int, *, threads: int = 1
) -> tuple[Tables, WordWeights, tuple[np.ndarray, np.ndarray], list, tuple[float, float]]:
    """WordWeights after some pieces, those before, the windows and the loss with its count."""
    tables = Tables.of(text_stream(), settings)
    weights = WordWeights.start(tables.words, settings, WORD_TIERS[tier].lanes)
    draw = np.random.default_rng(7)  # outputs that are not 0, or half of the sums hide
    weights.outputs[:, : settings.dim] = draw.normal(0, 0.1, (len(weights.outputs), settings.dim))
    weights.inputs[:, : settings.dim] = draw.normal(0, 0.1, (len(weights.inputs), settings.dim))
    before = weights.inputs.astype(np.float64), weights.outputs.astype(np.float64)
    engine = NativeWordEngine(tables, weights, settings, tier=tier, threads=threads)
    trace = np.zeros(1 << 20, dtype=np.int32)
    result, length = engine.traced(0, pieces, 5, trace)
    windows = list(traced_windows(trace[:length]))
    return tables, weights, before, windows, result


@pytest.mark.parametrize(("model", "loss"), MODES)
@pytest.mark.parametrize("more", [{}, {"negatives": 3}, {"negatives": 20}, {"combine": "sum"}])
def test_a_hundred_windows_equal_plain_loops_in_float64(
    tier: str, model: str, loss: str, more: dict
) -> None:
    if (loss == "hierarchical" and "negatives" in more) or (model != "cbow" and "combine" in more):
        pytest.skip("no such setting")
    settings = Word2VecSettings(model=model, loss=loss, dim=20, sample=0.05, window=4, **more)
    tables, weights, (inputs, outputs), windows, (total, pairs) = trained(tier, settings, 12)
    assert len(windows) >= 100
    assert any((window.weights > 1).any() for window in windows)  # a neighbor twice
    loss_sum = count = 0.0
    for window in windows:
        found = reference_window(inputs, outputs, window, settings, tables.shift)
        loss_sum, count = loss_sum + found[0], count + found[1]
    assert np.abs(weights.inputs - inputs).max() < 1e-6
    assert np.abs(weights.outputs - outputs).max() < 1e-6
    assert (pairs, count) == (count, pairs)
    assert total == pytest.approx(loss_sum, rel=1e-5)
    assert not weights.inputs[:, settings.dim :].any()  # the padding stays 0


@pytest.mark.parametrize(("model", "loss"), MODES)
def test_the_reported_loss_is_that_of_a_thousand_windows(tier: str, model: str, loss: str) -> None:
    settings = Word2VecSettings(model=model, loss=loss, dim=16, sample=0.0)
    tables, _, (inputs, outputs), windows, (total, pairs) = trained(tier, settings, 110)
    assert len(windows) >= 1000
    recomputed = [
        reference_window(inputs, outputs, window, settings, tables.shift) for window in windows
    ]
    mean = sum(loss for loss, _ in recomputed) / sum(count for _, count in recomputed)
    assert total / pairs == pytest.approx(mean, abs=1e-4)


@pytest.mark.parametrize("model", ["skipgram", "cbow"])
def test_copies_of_the_nodes_next_to_the_root_lose_nothing(
    tier: str, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "HOT_NODES", 9)  # and others are not copied
    settings = Word2VecSettings(model=model, loss="hierarchical", dim=16, sample=0.0)
    _, weights, (inputs, outputs), windows, (total, _) = trained(tier, settings, 110, threads=2)
    assert len(windows) > 2 * 512  # the copies are exchanged on the way
    losses = [reference_window(inputs, outputs, window, settings, None)[0] for window in windows]
    assert np.abs(weights.inputs - inputs).max() < 1e-5
    assert np.abs(weights.outputs - outputs).max() < 1e-5
    assert total == pytest.approx(sum(losses), rel=1e-5)


def test_windows_hold_what_they_should(tier: str) -> None:
    settings = Word2VecSettings(dim=8, window=3, negatives=4, sample=0.0)
    tables, _, _, windows, _ = trained(tier, settings, 3)
    texts = [
        [word - 1 for word in tables.ids[a:b] if word]
        for a, b in zip(tables.pieces[:3], tables.pieces[1:4], strict=True)
    ]
    places = [(text, at) for text in texts if len(text) > 1 for at in range(len(text))]
    assert len(windows) == len(places)
    reaches = set()
    for window, (text, at) in zip(windows, places, strict=True):
        assert (window.center, window.outputs[0]) == (text[at], text[at])
        size = int(window.weights.sum())
        possible = {
            r: [text[p] for p in range(max(0, at - r), min(len(text), at + r + 1)) if p != at]
            for r in (1, 2, 3)
        }
        fitting = [r for r, words in possible.items() if len(words) == size]
        assert fitting
        expected = possible[fitting[0]]
        assert sorted(np.repeat(window.neighbors, window.weights).tolist()) == sorted(expected)
        reaches.add(fitting[0])
        assert text[at] not in window.outputs[1:].tolist()  # noise is never the middle word
        assert len(set(window.outputs.tolist())) == len(window.outputs)
        assert window.sizes[1:].sum() <= 4
    assert reaches == {1, 2, 3}


def test_noise_is_drawn_by_count_to_the_power(tier: str) -> None:
    settings = Word2VecSettings()
    tables = Tables.of(text_stream(), settings)
    weights = WordWeights.start(tables.words, settings, WORD_TIERS[tier].lanes)
    engine = NativeWordEngine(tables, weights, settings, tier=tier)
    draws = 2_000_000
    counts = engine.noise_counts(draws, seed=11)
    expected = np.asarray(tables.shares) * draws
    assert tables.shares.sum() == pytest.approx(1.0)
    there = expected > 0
    assert not counts[~there].any()
    assert chisquare(counts[there], expected[there]).pvalue > 1e-3
    wrong = noise_shares(text_stream().counts[1:], 0.7)[there] * draws
    assert chisquare(counts[there], wrong).pvalue < 1e-6


def test_the_alias_table_is_exact() -> None:
    shares = noise_shares(np.array([50, 20, 20, 9, 1, 0, 0]), 0.75)
    table = alias_table(shares)
    found = table[:, 0] / 2.0**32 / len(shares)
    np.add.at(found, table[:, 1], (1 - table[:, 0] / 2.0**32) / len(shares))
    assert found == pytest.approx(shares, abs=1e-9)


def test_words_stay_with_word2vecs_probability() -> None:
    counts = np.array([90_000, 9_000, 900, 100])
    keep = keep_thresholds(counts, 1e-2) / 2.0**32
    for share, count in zip(keep, counts, strict=True):
        t = 1e-2 * counts.sum()
        assert share == pytest.approx(min(1.0, (np.sqrt(count / t) + 1) * t / count), abs=1e-9)
    assert (keep_thresholds(counts, 0.0) == 2**32 - 1).all()


def test_probabilities_of_the_tree_add_up_to_one() -> None:
    rng = np.random.default_rng(2)
    for counts in ([5, 3], [9, 9, 9, 9, 9], [2**n for n in range(60, 0, -1)], [3, 1, 7, 0, 2]):
        tree = huffman_tree(np.array(counts, dtype=np.int64))
        outputs = rng.normal(size=(len(counts) - 1, 6))
        for h in rng.normal(size=(20, 6)):
            total = 0.0
            for word in range(len(counts)):
                nodes, codes = tree.path(word)
                total += np.prod(1 / (1 + np.exp(-(1 - 2.0 * codes) * (outputs[nodes] @ h))))
            assert total == pytest.approx(1.0, abs=1e-6)


def test_the_tree_has_the_least_mean_length() -> None:
    import heapq

    rng = np.random.default_rng(4)
    counts = np.sort(rng.zipf(1.4, 500).clip(max=10**6))[::-1].astype(np.int64)
    tree = huffman_tree(counts)
    heap, least = list(map(int, counts)), 0
    heapq.heapify(heap)
    while len(heap) > 1:
        both = heapq.heappop(heap) + heapq.heappop(heap)
        least += both
        heapq.heappush(heap, both)
    assert int((np.diff(tree.starts) * counts).sum()) == least
    assert (tree.nodes[tree.starts[:-1]] == len(counts) - 2).all()  # all paths begin at the root


@pytest.mark.parametrize(("model", "loss"), MODES)
def test_the_torch_step_equals_plain_loops(model: str, loss: str) -> None:
    settings = Word2VecSettings(model=model, loss=loss, dim=12, sample=0.0)
    tables = Tables.of(text_stream(), settings)
    engine = TorchWordEngine(tables, WordWeights.start(tables.words, settings, 1), settings)
    draw = np.random.default_rng(3)
    words, piece, _ = engine._text(0, 3, draw)
    rows = engine._rows(words, piece, np.full(len(words), 2), (0, 12), draw)  # none is damped
    assert rows is not None
    vectors = draw.normal(0, 0.5, (tables.words, 12))
    nodes = draw.normal(0, 0.5, (tables.words, 12))
    inputs, outputs = torch.from_numpy(vectors.copy()), torch.from_numpy(nodes.copy())
    double = {
        name: value.double()
        if isinstance(value, torch.Tensor) and value.is_floating_point()
        else value
        for name in rows.__slots__
        for value in [getattr(rows, name)]
    }
    shift = None if tables.shift is None else torch.from_numpy(tables.shift).double()
    found = train_step(inputs, outputs, type(rows)(**double), 0.05, shift)
    wanted_inputs, wanted_outputs, total = vectors.copy(), nodes.copy(), 0.0
    for query in range(len(rows.targets)):
        owners = range(len(rows.members)) if rows.owners is None else rows.owners.tolist()
        mine = [k for k, owner in enumerate(owners) if owner == query]
        share, back = (
            (lambda k, of=of: 1.0 if of is None else float(of[k]))
            for of in (rows.shares, rows.backs)
        )
        h = sum(share(k) * vectors[int(rows.members[k])] for k in mine)
        pairs = [
            (int(t), float(s), float(w))
            for t, s, w in zip(
                rows.targets[query], rows.signs[query], rows.sizes[query], strict=True
            )
        ]
        if rows.common is not None and rows.common_sizes is not None:
            right = [False] * len(rows.common) if rows.right is None else rows.right[query].tolist()
            noise = zip(rows.common, rows.common_sizes, right, strict=True)
            pairs += [(int(t), -1.0, float(w)) for t, w, own in noise if not own]
        error = np.zeros(12)
        for target, sign, size in pairs:
            score = h @ nodes[target] + (0.0 if shift is None else float(shift[target]))
            right = 1 / (1 + np.exp(-sign * score))
            total -= size * np.log(right)
            step = 0.05 * size * sign * (1 - right)
            error += step * nodes[target]
            wanted_outputs[target] += step * h
        for k in mine:
            wanted_inputs[int(rows.members[k])] += back(k) * error
    assert np.abs(inputs.numpy() - wanted_inputs).max() < 1e-6
    assert np.abs(outputs.numpy() - wanted_outputs).max() < 1e-6
    assert found == pytest.approx(total, rel=1e-6)
    if loss != "hierarchical":  # k noise words per prediction, but for the middle word itself
        assert rows.common_sizes is not None
        assert float(rows.common_sizes.sum()) == pytest.approx(5.0)
        assert rows.right is not None
        assert rows.common is not None
        assert rows.right.tolist() == (rows.targets == rows.common).tolist()
        assert rows.right.any()


def test_long_lines_are_cut_into_pieces() -> None:
    pieces, cut = text_pieces(np.array([0, 3, 3, 2_503, 2_504]), longest=1_000)
    assert pieces.tolist() == [0, 3, 3, 1_003, 2_003, 2_503, 2_504]
    assert cut == 1


def test_the_probe_measured_error_and_speed(tier: str) -> None:
    finding = cached(f"word2vec_{tier}", probes=WORD_PROBES)
    assert finding is not None
    assert finding.error is not None
    assert 0.0 < finding.error < 1e-4
    assert "words per second" in finding.detail
