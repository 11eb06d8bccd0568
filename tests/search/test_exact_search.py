"""Exact search and similar pairs against brute force, ties and all; quantized forms."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bertsmith.errors import ConfigError, InputFileError
from bertsmith.search import exact
from bertsmith.search.exact import scan
from bertsmith.search.pairs import similar_pairs
from bertsmith.search.quantized import hamming, int8_codes, rotation, sign_bits
from bertsmith.search.question_bank import best_threshold, read_pairs


def matrix(rows: int, width: int = 24, seed: int = 0) -> np.ndarray:
    # Few values: products are exact in float32, and many of them are equal.
    return np.random.default_rng(seed).integers(-2, 3, (rows, width)).astype(np.float32)


@pytest.mark.parametrize("queries", [1, 2, 5, 300])
@pytest.mark.parametrize("kind", [np.float32, np.float16, np.int8])
def test_a_scan_is_brute_force(monkeypatch: pytest.MonkeyPatch, queries: int, kind: type) -> None:
    monkeypatch.setattr(exact, "BLOCK", 64)
    monkeypatch.setattr(exact, "OFFERED", 4_096)
    rows, asked = matrix(1_000), matrix(queries, seed=1)
    alive = np.random.default_rng(2).random(1_000) < 0.7
    parts = [(at, rows[at : at + 300].astype(kind), None) for at in range(0, 1_000, 300)]
    scores = asked @ rows.T
    for flags in (None, alive):
        allowed = scores if flags is None else np.where(flags, scores, -np.inf)
        wanted = [np.lexsort((np.arange(1_000), -line))[:20].tolist() for line in allowed]
        assert [found.tolist() for found in scan(parts, asked, 20, flags)] == wanted


def test_fewer_rows_than_wanted() -> None:
    found = scan([(0, matrix(5), None)], matrix(2), 20, np.array([True, False, True, True, True]))
    assert [sorted(one.tolist()) for one in found] == [[0, 2, 3, 4]] * 2
    assert [one.tolist() for one in scan([], matrix(2), 3)] == [[], []]


@pytest.mark.parametrize("least", [-1.0, 0.5])
def test_pairs_are_brute_force(monkeypatch: pytest.MonkeyPatch, least: float) -> None:
    monkeypatch.setattr("bertsmith.search.pairs.BLOCK", 64)
    rows = np.random.default_rng(0).standard_normal((300, 8)).astype(np.float32)
    unit = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float64)
    every = [(i, j) for i in range(300) for j in range(i + 1, 300)]
    every = sorted(pair for pair in every if unit[pair[0]] @ unit[pair[1]] >= least)
    wanted = sorted(every, key=lambda pair: -(unit[pair[0]] @ unit[pair[1]]))[:500]
    found = similar_pairs(rows, 500, least=least)
    assert [(pair.first, pair.second) for pair in found] == wanted
    assert found[0].similarity == pytest.approx(unit[wanted[0][0]] @ unit[wanted[0][1]], abs=1e-6)


def test_equal_rows_are_pairs_unless_skipped() -> None:
    rows = np.repeat(np.random.default_rng(0).standard_normal((30, 8)), 3, axis=0)
    texts = [str(i // 3) for i in range(90)]
    found = similar_pairs(rows.astype(np.float32), 90)
    assert [(p.first, p.second) for p in found[:3]] == [(0, 1), (0, 2), (1, 2)]
    assert all(p.similarity == pytest.approx(1) for p in found)
    kept = similar_pairs(rows.astype(np.float32), 90, texts=texts)
    assert {p.first % 3 for p in kept} == {p.second % 3 for p in kept} == {0}


def test_what_pairs_refuse() -> None:
    rows = np.ones((3, 4), np.float32)
    rows[1] = 0
    with pytest.raises(ConfigError, match="row 2: its vector is zero"):
        similar_pairs(rows, 1)
    with pytest.raises(ConfigError, match="must be at least 1, not 0"):
        similar_pairs(rows, 0)


def test_codes_and_bits() -> None:
    rows = np.random.default_rng(0).standard_normal((50, 70)).astype(np.float32)
    codes, scales = int8_codes(rows)
    assert np.abs(codes).max(axis=1).tolist() == [127] * 50
    np.testing.assert_allclose(codes * scales[:, None], rows, atol=float(scales.max()) / 2 + 1e-6)
    assert int8_codes(np.zeros((1, 4), np.float32))[0].tolist() == [[0, 0, 0, 0]]
    bits = sign_bits(rows)
    assert bits.shape == (50, 2)
    turned = rows @ rotation(70)
    np.testing.assert_allclose(turned @ turned.T, rows @ rows.T, atol=1e-3)
    wanted = ((turned[0] > 0) != (turned > 0)).sum(axis=1)
    assert hamming(bits[0], bits).tolist() == wanted.tolist()


def test_bits_of_vectors_with_few_large_columns() -> None:
    scale = 1 / np.sqrt(1 + np.arange(128))
    rows = (np.random.default_rng(0).standard_normal((3_000, 128)) * scale).astype(np.float32)
    bits = sign_bits(rows)
    found = [np.argsort(hamming(bits[i], bits))[:400] for i in range(50)]
    true = [
        np.argsort(-(rows / np.linalg.norm(rows, axis=1, keepdims=True)) @ rows[i])[:10]
        for i in range(50)
    ]
    assert np.mean([np.isin(a, b).mean() for a, b in zip(true, found, strict=True)]) > 0.97


def test_the_threshold_of_the_best_f1() -> None:
    scores = np.array([0.9, 0.8, 0.7, 0.6, 0.5])
    same = np.array([True, True, False, True, False])
    threshold, f1 = best_threshold(scores, same)
    assert (threshold, f1) == pytest.approx((0.55, 6 / 7))
    tied = np.array([0.5, 0.5, 0.5, 0.1])
    threshold, f1 = best_threshold(tied, np.array([True, False, False, False]))
    assert (threshold, f1) == pytest.approx((0.3, 0.5))  # equal scores stay on one side


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a\tb\t1\n" * 12, "12 pairs that ask the same and 0 that do not"),
        ("a\tb\t1\nc\td\t0\n", "at least 10 pairs"),
        ("a\tb\t1\na\tb\tmaybe\n", "row 2: a pair is .* not 3 columns with 'maybe'"),
        ("a\tb\n", "row 1: a pair is .* not 2 columns"),
    ],
)
def test_pairs_that_no_threshold_can_come_from(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "pairs.tsv").write_text(content)
    with pytest.raises(InputFileError, match=message):
        read_pairs(tmp_path / "pairs.tsv")
