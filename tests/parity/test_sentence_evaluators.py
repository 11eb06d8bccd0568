"""Evaluators against sentence-transformers, on the same vectors, with many ties."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bertsmith.metrics.correlation import pearson, spearman
from bertsmith.metrics.pair_scores import PAIRS
from bertsmith.metrics.retrieval import NAMES, RETRIEVAL
from bertsmith.sentences.compare import SIMILARITIES, paired_similarity, rank_documents

peers = pytest.importorskip("sentence_transformers.evaluation")
D = 4


class Table:
    """Stands in for a sentence-transformers model: texts are the numbers of rows."""

    similarity_fn_name = "cosine"
    model_card_data = None

    def __init__(self, vectors: np.ndarray) -> None:
        self.vectors = vectors

    def encode(self, texts: Any, **_: Any) -> np.ndarray:
        return self.vectors[[int(text) for text in texts]]

    encode_query = encode_document = encode

    def similarity(self, first: Any, second: Any) -> Any:
        from sentence_transformers.util import cos_sim

        return cos_sim(first, second)


def vectors(rows: int, seed: int, *, ties: bool) -> np.ndarray:
    random = np.random.default_rng(seed)
    if ties:  # few directions of whole numbers: cosines repeat exactly
        return random.integers(1, 3, (rows, D)).astype(np.float32)
    return random.standard_normal((rows, D)).astype(np.float32)


def plain(evaluator: Any, model: Table) -> dict[str, float]:
    evaluator.store_metrics_in_model_card_data = lambda *_: None
    evaluator.write_csv = False
    return dict(evaluator(model))


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("kind", SIMILARITIES)
def test_correlations(kind: Any, ties: bool) -> None:
    rows = 60
    table = vectors(2 * rows, 1, ties=ties)
    gold = np.random.default_rng(2).integers(0, 6, rows).astype(float)
    texts = [str(number) for number in range(2 * rows)]
    theirs = plain(
        peers.EmbeddingSimilarityEvaluator(
            texts[:rows], texts[rows:], gold.tolist(), main_similarity=kind
        ),
        Table(table),
    )
    ours = paired_similarity(kind, table[:rows], table[rows:])
    assert spearman(gold, ours) == pytest.approx(theirs[f"spearman_{kind}"], abs=1e-6)
    assert pearson(gold, ours) == pytest.approx(theirs[f"pearson_{kind}"], abs=1e-6)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("ties", [False, True])
def test_pair_classification(seed: int, ties: bool) -> None:
    rows = 50
    table = vectors(2 * rows, seed, ties=ties)
    labels = np.random.default_rng(seed + 9).integers(0, 2, rows)
    texts = [str(number) for number in range(2 * rows)]
    theirs = plain(
        peers.BinaryClassificationEvaluator(
            texts[:rows], texts[rows:], labels.tolist(), similarity_fn_names=["cosine"]
        ),
        Table(table),
    )
    scores = paired_similarity("cosine", table[:rows], table[rows:])
    ours = PAIRS.score(labels, scores)
    assert len(set(scores.tolist())) == rows or ties
    for name, value in ours.items():
        assert value == pytest.approx(theirs[f"cosine_{name}"], abs=1e-6), name


def test_pair_classification_where_the_best_cut_takes_all_or_nothing() -> None:
    for labels in ([1, 1, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 1, 1]):
        table = np.array(
            [[1, 0], [2, 1], [1, 1], [1, 2], *[[1, 0]] * 4], dtype=np.float32
        )  # cosines fall
        texts = [str(number) for number in range(8)]
        theirs = plain(
            peers.BinaryClassificationEvaluator(
                texts[:4], texts[4:], labels, similarity_fn_names=["cosine"]
            ),
            Table(table),
        )
        ours = PAIRS.score(labels, paired_similarity("cosine", table[:4], table[4:]))
        for name, value in ours.items():
            assert value == pytest.approx(theirs[f"cosine_{name}"], abs=1e-6), (labels, name)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("documents", [7, 150])
def test_retrieval(documents: int, ties: bool) -> None:
    asked = 20
    table = vectors(asked + documents, 5, ties=ties)
    random = np.random.default_rng(6)
    relevant = [
        set(random.choice(documents, random.integers(1, 5), replace=False).tolist())
        for _ in range(asked)
    ]
    theirs = plain(
        peers.InformationRetrievalEvaluator(
            {f"q{number}": str(number) for number in range(asked)},
            {f"{number:04}": str(asked + number) for number in range(documents)},
            {f"q{n}": {f"{number:04}" for number in some} for n, some in enumerate(relevant)},
        ),
        Table(table),
    )
    ranked = rank_documents("cosine", table[:asked], table[asked:], 100)
    ours = RETRIEVAL.score(relevant, ranked)
    assert tuple(ours) == NAMES
    for name, value in ours.items():
        assert value == pytest.approx(theirs[f"cosine_{name}"], abs=1e-6), name


@pytest.mark.parametrize("kind", SIMILARITIES)
def test_triplets(kind: Any) -> None:
    rows = 40
    table = vectors(3 * rows, 8, ties=True)
    texts = [str(number) for number in range(3 * rows)]
    theirs = plain(
        peers.TripletEvaluator(
            texts[:rows], texts[rows : 2 * rows], texts[2 * rows :], similarity_fn_names=[kind]
        ),
        Table(table),
    )
    near = paired_similarity(kind, table[:rows], table[rows : 2 * rows])
    far = paired_similarity(kind, table[:rows], table[2 * rows :])
    assert float((near > far).mean()) == pytest.approx(theirs[f"{kind}_accuracy"], abs=1e-6)
