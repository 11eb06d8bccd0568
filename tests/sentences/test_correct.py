"""Whitening is the published formula, flow inverts exactly, and both are plain dense layers."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import torch

from bertsmith.errors import ConfigError, TextError
from bertsmith.models.sentence_spec import SentenceSettings
from bertsmith.sentences.transform import flow as flow_module
from bertsmith.sentences.transform.flow import FlowSettings, fit_flow
from bertsmith.sentences.transform.moments import Moments, Reservoir, moments_of
from bertsmith.sentences.transform.whitening import whitening


def vectors(rows: int, width: int = 12, seed: int = 0) -> np.ndarray:
    """Correlated, off center, of very different scales, not Gaussian."""
    random = np.random.default_rng(seed)
    mixing = np.random.default_rng(99).standard_normal((width, width)) * np.logspace(0, -1, width)
    raw = random.standard_normal((rows, width))
    raw[:, 1] += raw[:, 0] ** 2
    return (raw @ mixing + 0.5).astype(np.float32)


def applied(layers: object, x: np.ndarray, *, double: bool = False) -> np.ndarray:
    head = SentenceSettings(dense=layers).head()  # type: ignore[arg-type]
    given = torch.from_numpy(x)
    return head.finish(given.double() if double else given).numpy()


def published(x: np.ndarray, k: int) -> np.ndarray:
    """compute_kernel_bias and transform of bojone/BERT-whitening, which divides by n - 1."""
    mu = x.mean(axis=0, keepdims=True)
    u, s, _ = np.linalg.svd(np.cov(x.T))
    return (x - mu) @ (u @ np.diag(1 / np.sqrt(s)))[:, :k]


@pytest.mark.parametrize("k", [12, 5])
def test_whitening_is_the_published_formula(k: int) -> None:
    x = vectors(400).astype(np.float64)
    theirs = published(x, k)
    found = whitening(moments_of([x[:7], x[7:300], x[300:]], 12), k)
    ours = found(x)
    signs = np.sign((ours * theirs).sum(axis=0))
    np.testing.assert_allclose(ours, theirs * signs, atol=1e-6)
    np.testing.assert_allclose(np.cov(ours.T), np.eye(k), atol=1e-9)
    np.testing.assert_allclose(applied((found.layer(),), x.astype(np.float32)), ours, atol=1e-4)


def test_moments_in_any_blocks_are_those_of_the_whole() -> None:
    x = vectors(1000) + 1e4  # a large mean cancels in the naive sum of squares
    moments = moments_of(np.array_split(x, [1, 3, 500]), 12)
    exact = np.asarray(x, dtype=np.float64)
    np.testing.assert_allclose(moments.mean, exact.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(moments.covariance(), np.cov(exact.T), rtol=1e-7, atol=1e-9)


def test_dead_directions_are_dropped_and_counted() -> None:
    x = vectors(300, 6)
    x = np.concatenate([x, x[:, :1] + x[:, 1:2], np.full((300, 1), 5.0)], axis=1).astype(np.float64)
    found = whitening(moments_of([x], 8))
    assert (found.kept, found.dead) == (6, 2)
    assert np.isfinite(found(x)).all()
    with pytest.raises(ConfigError, match=r"7 dimensions cannot be kept.*rank 6; the largest"):
        whitening(moments_of([x], 8), 7)


def test_too_few_texts_name_the_rank_and_the_largest_number_to_keep() -> None:
    few = moments_of([vectors(9)], 12)
    with pytest.raises(ConfigError, match=r"9 texts are too few.*rank 8; .*at most 8 dimensions"):
        whitening(few)
    with pytest.raises(ConfigError, match="of 9 texts has rank 8; the largest number to keep is 8"):
        whitening(few, 9)
    assert whitening(few, 8).kept == 8
    for blocks, words in (([], "there are 0"), ([np.ones((5, 12))], "the same vector")):
        with pytest.raises(ConfigError, match=words):
            whitening(moments_of(blocks, 12))
    with pytest.raises(ConfigError, match="at least 1, not 0"):
        whitening(moments_of([vectors(50)], 12), 0)


def test_a_vector_that_is_not_finite_is_named_by_its_number() -> None:
    x = vectors(30)
    x[7, 2] = np.nan
    moments = Moments(12)
    moments.add(x[:5])
    with pytest.raises(TextError, match="the vector of text 8 holds"):
        moments.add(x[5:])


def test_a_sample_is_uniform_and_bounded() -> None:
    counts = np.zeros(100)
    for seed in range(400):
        sample = Reservoir(20, 1, seed)
        for block in np.array_split(np.arange(100.0)[:, None], 7):
            sample.add(block)
        assert len(sample.vectors) == 20
        counts[sample.vectors[:, 0].astype(int)] += 1
    assert counts.min() > 40  # 80 expected
    assert counts.max() < 130


@pytest.mark.parametrize("start", ["rotated", "whitened"])
def test_a_flow_inverts_exactly_and_is_its_dense_layers(start: str) -> None:
    x = vectors(2000)
    fit = fit_flow([x[:700], x[700:]], 12, FlowSettings(start=start, hidden=5, epochs=2))  # type: ignore[arg-type]
    exact = torch.from_numpy(x).double()
    z = fit.flow(exact)
    assert float((fit.flow.inverse(z) - exact).abs().max()) < 1e-9
    single = fit.flow.float()
    assert float((single.inverse(single(exact.float())) - exact).abs().max()) < 1e-4
    layers = fit.flow.layers()
    assert len(layers) == 9
    np.testing.assert_allclose(applied(layers, x, double=True), z.numpy(), atol=1e-4)


def test_the_likelihood_is_that_of_the_change_of_variables() -> None:
    x = vectors(500)
    fit = fit_flow([x], 12, FlowSettings(hidden=4, epochs=3))
    point = torch.from_numpy(x[0]).double()
    jacobian = torch.autograd.functional.jacobian(lambda v: fit.flow(v[None])[0], point)
    z = fit.flow(point[None])[0]
    log_p = -0.5 * float(z @ z) - 6 * np.log(2 * np.pi) + float(torch.linalg.slogdet(jacobian)[1])
    nll = float(fit.flow.nll(fit.flow.coordinates(point[None])))
    assert nll == pytest.approx(-log_p / 12, abs=1e-9)


def test_a_flow_that_starts_whitened_learns_what_whitening_cannot() -> None:
    x = vectors(4000)
    fit = fit_flow([x], 12, FlowSettings(start="whitened", epochs=20, rate=1e-2))
    assert fit.nll < fit.whitening_nll - 0.005
    assert fit.learned_from + fit.held_out == fit.texts == 4000
    again = fit_flow([x], 12, FlowSettings(start="whitened", epochs=20, rate=1e-2))
    assert again.nll == fit.nll


def test_a_dead_direction_and_a_reduced_flow() -> None:
    x = np.concatenate([vectors(600), np.full((600, 1), 2.0, np.float32)], axis=1)
    fit = fit_flow([x], 13, FlowSettings(epochs=1))
    assert (fit.flow.kept, fit.whitening.dead) == (12, 1)
    assert np.isfinite(fit.nll)
    assert fit_flow([x], 13, FlowSettings(epochs=1, keep=4)).flow.layers()[-1].outputs == 4
    with pytest.raises(ConfigError, match="rank 12; the largest number to keep is 12"):
        fit_flow([x], 13, FlowSettings(keep=13))
    with pytest.raises(ConfigError, match="at least 2 texts, and there are 1"):
        fit_flow([vectors(1)], 12, FlowSettings())


def test_memory_does_not_grow_with_the_number_of_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow_module, "MOST_VECTORS", 500)
    monkeypatch.setattr(flow_module, "MOST_HELD_OUT", 100)
    block = vectors(200, 64)
    peaks = []
    for blocks in (10, 100):
        tracemalloc.start()
        texts = flow_module.FlowTexts(64, FlowSettings())
        for _ in range(blocks):
            texts.add(block)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]
