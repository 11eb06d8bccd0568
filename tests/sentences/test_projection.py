"""Projections: PCA is that of an SVD with fixed signs, a seed gives one result."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from bertsmith.errors import BertsmithError, ConfigError, MissingExtraError
from bertsmith.sentences.map.projection import checked_method, project


def clouds(number: int, width: int = 12) -> np.ndarray:
    """Vectors around three centers."""
    random = np.random.default_rng(0)
    centers = 5 * random.standard_normal((3, width))
    noise = random.standard_normal((number, width))
    return (centers[np.arange(number) % 3] + noise).astype(np.float32)


@pytest.mark.parametrize("number", [3, 7, 400])
def test_pca_is_that_of_an_svd(number: int) -> None:
    vectors = clouds(number)
    centered = vectors.astype(np.float64) - vectors.astype(np.float64).mean(axis=0)
    left, values, right = np.linalg.svd(centered, full_matrices=False)
    signs = np.sign(right[np.arange(2), np.abs(right[:2]).argmax(axis=1)])
    found = project(vectors, "pca")
    np.testing.assert_allclose(found.points, left[:, :2] * values[:2] * signs, atol=1e-9)
    np.testing.assert_allclose(found.explained, values[:2] ** 2 / (values**2).sum(), atol=1e-9)


def test_points_on_a_line_have_a_second_coordinate_of_zero() -> None:
    vectors = np.outer(np.arange(5), np.ones(4)).astype(np.float32)
    found = project(vectors, "pca")
    np.testing.assert_allclose(np.diff(found.points[:, 0]), 2.0, atol=1e-6)
    assert not found.points[:, 1].any()
    assert found.explained == (1.0, 0.0)


def test_tsne_depends_on_the_seed_alone_and_separates_clouds() -> None:
    vectors = clouds(60)
    points = project(vectors, "tsne", seed=3).points
    assert np.array_equal(points, project(vectors, "tsne", seed=3).points)
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    nearest = distances.argmin(axis=1)
    assert (nearest % 3 == np.arange(60) % 3).mean() > 0.95


def test_umap_gets_the_seed_and_as_many_neighbors_as_there_are(monkeypatch) -> None:
    given: dict[str, object] = {}

    class Umap:
        def __init__(self, **options: object) -> None:
            given.update(options)

        def fit_transform(self, vectors: np.ndarray) -> np.ndarray:
            return vectors[:, :2]

    monkeypatch.setitem(sys.modules, "umap", SimpleNamespace(UMAP=Umap))
    assert project(clouds(9), "umap", seed=5).points.shape == (9, 2)
    assert given["random_state"] == 5
    assert given["n_neighbors"] == 8


def test_umap_itself_is_deterministic() -> None:
    pytest.importorskip("umap")
    vectors = clouds(40)
    points = project(vectors, "umap", seed=1).points
    assert np.array_equal(points, project(vectors, "umap", seed=1).points)


def test_what_cannot_be_projected_is_refused(monkeypatch) -> None:
    with pytest.raises(ConfigError, match="at least 3 points, and there are 2"):
        project(clouds(2), "pca")
    with pytest.raises(ConfigError, match="all 5 texts have the same vector"):
        project(np.ones((5, 4), np.float32), "tsne")
    with pytest.raises(BertsmithError, match="did you mean 'tsne'"):
        checked_method("t-sne")
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'bertsmith\[map\]'"):
        checked_method("umap")
