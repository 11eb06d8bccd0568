"""Index folders: what is found, added, deleted, and what a search sees of it."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from toy_index import ToyEncoder, brute_force, build, content, plan, source_of, texts

from bertsmith.errors import BertsmithError, ConfigError, InputFileError, LockedError, WriteError
from bertsmith.search.filters import parse_where
from bertsmith.search.folder import segments, writer
from bertsmith.search.folder.store import FolderStore, new_index
from bertsmith.search.index import Index, add_rows
from bertsmith.search.store import StoredRow, StoredType

ENCODER = ToyEncoder()
ROWS = texts(700)
QUESTIONS = ["w1 w2 w3", "w10 w11 w12 w13", "w299 w5", ROWS[3][0]]


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "MOST_ROWS", 256)


@pytest.mark.parametrize("stored", get_args(StoredType))
def test_every_type_finds_what_brute_force_finds(tmp_path: Path, stored: StoredType) -> None:
    with build(tmp_path / "index", ROWS, stored) as store:
        found = store.search(ENCODER.queries(QUESTIONS), 5)
        assert store.rows == 700
        assert len(store.segments) == 3
    for question, hits in zip(QUESTIONS, found, strict=True):
        assert [hit.id for hit in hits] == brute_force(ROWS, question, 5)
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        assert [(hit.text, hit.meta) for hit in hits] == [ROWS[hit.id] for hit in hits]
    assert found[3][0].similarity == pytest.approx(1, abs=1e-3)


def test_equal_texts_are_listed_by_row(tmp_path: Path) -> None:
    rows = [*texts(300), *[("w7 w8", {})] * 40]
    with build(tmp_path / "index", rows) as store:
        (hits,) = store.search(ENCODER.queries(["w7 w8"]), 30)
    assert [hit.id for hit in hits] == list(range(300, 330))


def test_more_results_than_rows_are_all_rows(tmp_path: Path) -> None:
    with build(tmp_path / "index", ROWS[:7]) as store:
        (hits,) = store.search(ENCODER.queries(["w1"]), 50)
        assert {hit.id for hit in hits} == set(range(7))
        with pytest.raises(ConfigError, match="k must be at least 1, not 0"):
            store.search(ENCODER.queries(["w1"]), 0)


@pytest.mark.parametrize("stored", get_args(StoredType))
def test_filters(tmp_path: Path, stored: StoredType) -> None:
    with build(tmp_path / "index", ROWS, stored) as store:
        where = parse_where(["label=b", "year>=2015"])
        (hits,) = store.search(ENCODER.queries(["w1 w2 w3"]), 10, where)
        matching = [i for i, (_, m) in enumerate(ROWS) if m["label"] == "b" and m["year"] >= "2015"]
        best = [i for i in brute_force(ROWS, "w1 w2 w3", 700) if i in matching][:10]
        assert [hit.id for hit in hits] == best
        assert store.matching(where) == matching
        with pytest.raises(ConfigError, match="did you mean 'label'"):
            store.search(ENCODER.queries(["w1"]), 1, parse_where(["labels=b"]))


def test_added_and_deleted_rows(tmp_path: Path) -> None:
    path = tmp_path / "index"
    more = [("w1 w2 w3", {"label": "new", "shelf": "7"})]
    with build(path, ROWS) as store:
        with store.writer(source_of(more)) as adding:
            assert adding.first_id == 700
            add_rows(adding, more, ENCODER, "more")
        assert store.rows == 700  # as it was when it was opened
    with FolderStore.open(path) as store:
        assert store.manifest.columns == ("label", "year", "shelf")
        (hits,) = store.search(ENCODER.queries(["w1 w2 w3"]), 1)
        assert (hits[0].id, hits[0].meta["shelf"]) == (700, "7")
        assert store.delete([700, 3, 700]) == 2
        assert store.rows == 699
        (hits,) = store.search(ENCODER.queries([ROWS[3][0]]), 699)
        assert not {3, 700} & {hit.id for hit in hits}
        assert len(hits) == 699
        with pytest.raises(ConfigError, match=r"no row with the id 3, 900; nothing was changed"):
            store.delete([5, 3, 900])
        assert 5 in store.matching(())
        assert [row.id for row in store.texts()] == store.matching(())
        assert "699 rows" in store.check()[1]
        assert "2 deleted" in store.check()[1]


def test_an_unfinished_source_resumes_after_a_deletion(tmp_path: Path) -> None:
    more = texts(20, seed=4)
    rows = [StoredRow(700 + i, text, meta) for i, (text, meta) in enumerate(more)]
    vectors = ENCODER.texts([text for text, _ in more])
    with build(tmp_path / "index", ROWS) as store:
        with store.writer(source_of(more)) as adding:
            adding.append(rows[:8], vectors[:8])
        store.delete([1])
        with store.writer(source_of(more)) as adding:
            assert (adding.done, adding.complete) == (8, False)
            adding.append(rows[8:], vectors[8:])
            adding.finish()
        with FolderStore.open(tmp_path / "index") as now:
            assert now.matching(()) == [0, *range(2, 720)]
            assert now.check()


def test_words_are_found(tmp_path: Path) -> None:
    rows = [("今天天气很好", {}), ("The weather in Beijing", {}), ("北京的天气", {"x": "1"})]
    with build(tmp_path / "index", rows) as store:
        (hits,) = store.search_words(["天气"], 5)
        assert [hit.id for hit in hits] == [2, 0]  # the shorter text first
        (hits,) = store.search_words(["BEIJING weather, weather"], 5)
        assert [hit.id for hit in hits] == [1]
        (hits,) = store.search_words(["天气"], 5, parse_where(["x!=1"]))
        assert [hit.id for hit in hits] == [0]
        assert store.search_words(["nothing of it"], 5) == [[]]


def test_the_same_build_again_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "index"
    build(path, ROWS).close()
    before = content(path)
    build(path, ROWS).close()
    assert content(path) == before
    with pytest.raises(WriteError, match="holds an index already; add to it"):
        build(path, ROWS[:5])
    assert content(path) == before


def test_two_writers(tmp_path: Path) -> None:
    path = tmp_path / "index"
    with (
        new_index(path, plan(), source_of(ROWS)),
        pytest.raises(LockedError, match=r"another writer is at work .*process \d+ on"),
    ):
        build(path, ROWS)
    with (
        build(path, ROWS) as store,
        store.writer(source_of(ROWS[:2])),
        pytest.raises(LockedError, match="another writer"),
    ):
        store.delete([1])


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (301, np.nan, "row 302: its vector has values that are not finite"),
        (5, np.inf, "row 6: its vector has values that are not finite"),
        (699, 0, "row 700: its vector is zero"),
    ],
)
def test_a_vector_that_cannot_be_compared(
    tmp_path: Path, place: int, value: float, message: str
) -> None:
    class Broken(ToyEncoder):
        def texts(self, texts):  # type: ignore[no-untyped-def]
            vectors = super().texts(texts)
            vectors[place] = value
            return vectors

    with (
        new_index(tmp_path / "index", plan(), source_of(ROWS)) as adding,
        pytest.raises(InputFileError, match=message),
    ):
        add_rows(adding, ROWS, Broken(), "rows")
    with build(tmp_path / "index", ROWS) as store:  # nothing of it is in the way
        assert store.rows == 700


def test_queries_that_cannot_be_compared(tmp_path: Path) -> None:
    with build(tmp_path / "index", ROWS[:5]) as store:
        vectors = ENCODER.queries(["w1", "w2"])
        vectors[1] = np.nan
        with pytest.raises(ConfigError, match="query 2: its vector has values that are not"):
            store.search(vectors, 1)
        with pytest.raises(ConfigError, match="70 dimensions"):
            store.search(vectors[:, :5], 1)


def test_an_empty_index_says_so(tmp_path: Path) -> None:
    with build(tmp_path / "index", ROWS[:5]) as store:
        store.delete(range(5))
        with pytest.raises(BertsmithError, match="index is empty: all its rows were deleted"):
            Index(store, ENCODER, "the index").search("w1")
    with (
        new_index(tmp_path / "none", plan(), source_of([])) as adding,
        pytest.raises(InputFileError, match="rows holds no texts"),
    ):
        add_rows(adding, [], ENCODER, "rows")


def test_a_folder_that_is_no_index_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("x")
    with pytest.raises(WriteError, match="exists already and is not an index"):
        build(tmp_path, ROWS[:5])
    assert [p.name for p in tmp_path.iterdir()] == ["letter.txt"]
    with pytest.raises(BertsmithError, match=r"index\.json is missing, so this is not an index"):
        FolderStore.open(tmp_path)


def test_segments_are_cut_at_their_size(tmp_path: Path) -> None:
    with build(tmp_path / "index", ROWS) as store:
        assert [segment.rows for segment in store.segments] == [256, 256, 188]
        assert segments.MOST_ROWS == 65_536
