"""The graph of large indexes: recall, filters, later rows, a missing library."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from toy_index import ToyEncoder, brute_force, build, source_of, texts

from bertsmith.errors import MissingExtraError
from bertsmith.search.filters import parse_where
from bertsmith.search.folder import candidates, writer
from bertsmith.search.folder.store import FolderStore
from bertsmith.search.index import add_rows

pytest.importorskip("usearch")
ENCODER = ToyEncoder()
ROWS = texts(2_000)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "MOST_ROWS", 512)
    monkeypatch.setattr(candidates, "EXACT_BELOW", 1_000)
    monkeypatch.setattr(candidates, "LATER_ROWS", 100)


def share_found(store: FolderStore, rows: list, questions: list[str]) -> float:  # type: ignore[type-arg]
    found = store.search(ENCODER.queries(questions), 10)
    hits = [{hit.id for hit in one} for one in found]
    true = [set(brute_force(rows, question, 10)) for question in questions]
    return float(np.mean([len(a & b) / 10 for a, b in zip(hits, true, strict=True)]))


def test_recall_is_measured_and_stored(tmp_path: Path) -> None:
    with build(tmp_path / "index", ROWS, "float16") as store:
        graph = store.manifest.graph
        assert graph is not None
        assert (graph.library, graph.rows, graph.recall.queries) == ("usearch", 2_000, 200)
        assert 0.98 <= graph.recall.low <= graph.recall.mean <= graph.recall.high <= 1
        questions = [text for text, _ in texts(50, seed=9)]
        assert share_found(store, ROWS, questions) >= 0.95
        assert "recall@10" in store.check()[-1]


def test_scores_are_those_of_an_exact_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with build(tmp_path / "index", ROWS, "float16") as store:
        (near,) = store.search(ENCODER.queries(["w1 w2 w3"]), 3)
        monkeypatch.setattr(candidates, "EXACT_BELOW", 10_000)
        (exact,) = store.search(ENCODER.queries(["w1 w2 w3"]), 3)
    assert near == exact


def test_a_rare_value_is_found(tmp_path: Path) -> None:
    rows = [
        (text, {"shelf": "rare" if i % 1_500 == 7 else "usual"}) for i, (text, _) in enumerate(ROWS)
    ]
    with build(tmp_path / "index", rows) as store:
        for value, count in (("rare", 2), ("usual", 10)):
            (hits,) = store.search(ENCODER.queries(["w1"]), 10, parse_where([f"shelf={value}"]))
            assert len(hits) == count
            assert {hit.meta["shelf"] for hit in hits} == {value}


def test_rows_that_come_later(tmp_path: Path) -> None:
    path = tmp_path / "index"
    build(path, ROWS).close()
    few, many = texts(50, seed=3), texts(400, seed=4)
    for rows, inside in ((few, 2_000), (many, 2_450)):
        with FolderStore.open(path) as store, store.writer(source_of(rows)) as adding:
            add_rows(adding, rows, ENCODER, "more")
        with FolderStore.open(path) as store:
            assert store.manifest.graph is not None
            assert store.manifest.graph.rows == inside
            (hits,) = store.search(ENCODER.queries([rows[17][0]]), 1)
            assert hits[0].text == rows[17][0]
    with FolderStore.open(path) as store:
        store.delete([hit.id for (hit,) in store.search(ENCODER.queries([many[17][0]]), 1)])
        assert store.rows == 2_449
        assert share_found(store, [*ROWS, *few, *many], [text for text, _ in texts(30, 9)]) > 0.9
    assert len(list(path.glob("graph-*"))) <= 2  # that of the generation before may still be read


def test_without_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "usearch.index", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'bertsmith\[search\]'"):
        build(tmp_path / "index", ROWS)
    with FolderStore.open(tmp_path / "index") as store:  # the rows are there, and are searched
        assert store.manifest.graph is None
        (hits,) = store.search(ENCODER.queries(["w1 w2"]), 5)
        assert [hit.id for hit in hits] == brute_force(ROWS, "w1 w2", 5)
    monkeypatch.undo()
