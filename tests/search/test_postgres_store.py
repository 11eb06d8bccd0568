"""An index in PostgreSQL: the same results as in a folder, on a real server."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import psycopg
import pytest
from postgres_server import PostgresServer
from toy_index import ToyEncoder, build, plan, source_of, texts

from bertsmith.errors import (
    BertsmithError,
    ConfigError,
    FolderError,
    InputFileError,
    LockedError,
    WriteError,
)
from bertsmith.labeled.texts import TextRow
from bertsmith.search.filters import Condition, parse_where
from bertsmith.search.index import Index, add_rows, new_store, open_store
from bertsmith.search.postgres import graph as graphs
from bertsmith.search.postgres import rows as reading
from bertsmith.search.postgres import store as stores
from bertsmith.search.postgres.address import Address
from bertsmith.search.postgres.store import DatabaseStore
from bertsmith.search.store import BankRecord, EncoderRecord, Hit, StoredRow, StoredType

ENCODER = ToyEncoder()
ROWS = texts(700)
_numbers = itertools.count()


@pytest.fixture
def address(postgres: PostgresServer) -> str:
    """The address of a table that no other test has."""
    return postgres.address(f"t{next(_numbers)}")


def made(address: str, rows: list[TextRow], stored: StoredType = "float32") -> DatabaseStore:
    with new_store(address, plan(stored), source_of(rows)) as writer:
        add_rows(writer, rows, ENCODER, "rows")
    return DatabaseStore(Address.parse(address))


def connection(address: str) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(Address.parse(address).conninfo, autocommit=True)


@pytest.mark.parametrize(("stored", "count"), [("float16", 1_000), ("float32", 200)])
def test_the_same_hits_as_a_folder(
    address: str, tmp_path: Path, stored: StoredType, count: int
) -> None:
    queries = np.random.default_rng(1).standard_normal((count, ENCODER.dimension), dtype=np.float32)
    with build(tmp_path / "index", ROWS, stored) as folder, made(address, ROWS, stored) as store:
        assert store.search(queries, 10) == folder.search(queries, 10)
        asked = ["w1 w2 w3", ROWS[3][0], "w299 w5"]
        assert repr(store.search_words(asked, 7)) == repr(folder.search_words(asked, 7))
        assert list(store.texts()) == list(folder.texts())
        both = [Index(one, ENCODER, "x").search(asked, 5, hybrid=True) for one in (folder, store)]
        assert both[0] == both[1]


def test_rows_that_a_rounded_query_cannot_order(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All as near to the query, so that rounding it to float16 would choose others."""
    monkeypatch.setattr(reading, "WIDER", 1)
    rows: list[TextRow] = [(f"w{number}", {}) for number in range(1_000)]
    random = np.random.default_rng(3)
    query = random.standard_normal(ENCODER.dimension)
    query /= np.linalg.norm(query)
    others = random.standard_normal((len(rows), len(query)))
    others -= np.outer(others @ query, query)
    others /= np.linalg.norm(others, axis=1, keepdims=True)

    class Near(ToyEncoder):
        def texts(self, texts):  # type: ignore[no-untyped-def]
            return (0.6 * query + 0.8 * others[: len(texts)]).astype(np.float32)

    for place in (address, tmp_path / "index"):
        with new_store(place, plan("float16"), source_of(rows)) as writer:
            add_rows(writer, rows, Near(), "rows")
    asked = query[None].astype(np.float32)
    with open_store(address) as store, open_store(tmp_path / "index") as folder:
        assert store.search(asked, 10) == folder.search(asked, 10)


WHERE: list[tuple[str, ...]] = [
    ("label=b", "year>=2015"),
    ("label!=b",),
    ("shelf!=1",),
    ("shelf=1",),
    ("price<10",),
    ("price<=1e400",),
    ("price>-inf",),
]


def test_filters_mean_the_same_as_in_a_folder(address: str, tmp_path: Path) -> None:
    prices = ["9.5", "1_0", " 11 ", "1e400", "nan", "cheap", "", "-0", "١٢", "0x10", "-1e400"]
    rows: list[TextRow] = [
        (text, {**meta, "price": prices[i % len(prices)], **({"shelf": "1"} if i % 2 else {})})
        for i, (text, meta) in enumerate(ROWS[:100])
    ]
    with build(tmp_path / "index", rows) as folder, made(address, rows) as store:
        for texts_of in WHERE:
            where = parse_where(texts_of)
            assert store.matching(where) == folder.matching(where), texts_of
            query = ENCODER.queries(["w1 w2 w3"])
            assert store.search(query, 10, where) == folder.search(query, 10, where), texts_of
            worded = [one.search_words(["w1 w2 w3 w4"], 4, where) for one in (store, folder)]
            assert repr(worded[0]) == repr(worded[1]), texts_of
        assert store.matching((Condition("label", "=", ("a", "b")),)) == folder.matching(
            (Condition("label", "=", ("a", "b")),)
        )


HOSTILE = [
    "'; DROP TABLE users; --",
    '"; SELECT 1; --',
    "\\'); DELETE FROM x; --",
    "%s %(a)s {} $1",
    "今天天气很好，我们去公园吧 🌧️ 𠮷",
    "a\tb\nc\r\n\\N \\.",
    "x" * 20_000,
]


def test_hostile_and_chinese_texts_columns_and_values(address: str) -> None:
    rows: list[TextRow] = [(f"w{i} {text}", {text: text}) for i, text in enumerate(HOSTILE)]
    with made(address, rows) as store:
        assert [(row.text, row.meta) for row in store.texts()] == rows
        for number, text in enumerate(HOSTILE):
            where = (Condition(text, "=", (text,)),)
            assert store.matching(where) == [number]
            (hits,) = store.search(ENCODER.queries([f"w{number} {text}"]), 1, where)
            assert (hits[0].text, hits[0].meta) == rows[number]
        assert store.matching((Condition(HOSTILE[0], ">", ("1",)),)) == []
        (hits,) = store.search_words(["天气"], 3)
        assert [hit.id for hit in hits] == [4]
        (hits,) = store.search_words(["x" * 20_000], 3)
        assert hits[0].id == 6
        with pytest.raises(ConfigError, match="no column of the index is called '1=1; DROP"):
            store.matching((Condition("1=1; DROP TABLE x", "=", ("1",)),))
        assert store.check()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("w1 \0", {}), "row 3: its text has the character U\\+0000"),
        (("w1", {"a": "x\0"}), "row 3: the column 'a' has the character U\\+0000"),
        (("w1", {"a\0": "x"}), "row 3: the name of a column has the character U\\+0000"),
        (("w1 \ud800", {}), "row 3: its text has half of a surrogate pair"),
    ],
)
def test_text_that_postgresql_cannot_store(address: str, row: TextRow, message: str) -> None:
    class Plain(ToyEncoder):
        def texts(self, texts):  # type: ignore[no-untyped-def]
            return super().texts(["w1"] * len(texts))

    with (
        new_store(address, plan(), ENCODER_SOURCE) as writer,
        pytest.raises(InputFileError, match=message),
    ):
        add_rows(writer, [*ROWS[:2], row], Plain(), "rows")
    with made(address, ROWS[:2]) as store:  # nothing of it is in the way
        assert store.rows == 2


ENCODER_SOURCE = source_of(ROWS[:3])


def test_added_and_deleted_rows(address: str) -> None:
    more: list[TextRow] = [("w1 w2 w3", {"label": "new", "shelf": "7"})]
    with made(address, ROWS) as store:
        with store.writer(source_of(more)) as adding:
            assert adding.first_id == 700
            add_rows(adding, more, ENCODER, "more")
        assert store.rows == 700  # as it was when it was opened
        assert len(store.matching(())) == 700
    with DatabaseStore(Address.parse(address)) as store:
        assert store.manifest.columns == ("label", "year", "shelf")
        (hits,) = store.search(ENCODER.queries(["w1 w2 w3"]), 1)
        assert (hits[0].id, hits[0].meta["shelf"]) == (700, "7")
        assert store.delete([700, 3, 700]) == 2
        assert store.rows == 699
        (hits,) = store.search(ENCODER.queries([ROWS[3][0]]), 699)
        assert len(hits) == 699
        assert not {3, 700} & {hit.id for hit in hits}
        (hits,) = store.search_words([ROWS[3][0]], 700)
        assert 3 not in {hit.id for hit in hits}
        with pytest.raises(ConfigError, match=r"no row with the id 3, 900; nothing was changed"):
            store.delete([5, 3, 900])
        with pytest.raises(ConfigError, match="no row with the id 99999999999999999999"):
            store.delete([99999999999999999999])
        assert 5 in store.matching(())
        assert "699 rows of 70 dimensions (float32 as vector), 2 deleted" in store.check()


def test_an_unfinished_source_is_not_seen_and_resumes_after_a_deletion(address: str) -> None:
    more = texts(20, seed=4)
    vectors = ENCODER.texts([text for text, _ in more])
    rows = _stored(more, 700)
    with made(address, ROWS) as store:
        with store.writer(source_of(more)) as adding:
            adding.append(rows[:8], vectors[:8])
        assert len(store.matching(())) == 700
        store.delete([1])
        with store.writer(source_of(more)) as adding:
            assert (adding.done, adding.complete, adding.replaced) == (8, False, False)
            adding.append(rows[8:], vectors[8:])
            adding.finish()
        with store.writer(source_of(texts(5, seed=6))) as adding:  # abandoned
            adding.append(_stored(texts(5, seed=6), 720), vectors[:5])
        with store.writer(source_of(texts(3, seed=7))) as adding:
            assert (adding.done, adding.replaced) == (0, True)
            add_rows(adding, texts(3, seed=7), ENCODER, "more")
    with DatabaseStore(Address.parse(address)) as store:
        assert store.matching(()) == [0, *range(2, 723)]
        assert store.check()


def _stored(rows: list[TextRow], first: int) -> list[StoredRow]:
    return [StoredRow(first + i, text, meta) for i, (text, meta) in enumerate(rows)]


def test_the_same_build_again_changes_nothing(address: str) -> None:
    made(address, ROWS).close()
    with made(address, ROWS) as store:
        assert store.rows == 700
        assert store.manifest.generation == 1
    with pytest.raises(WriteError, match="holds an index already; add to it"):
        made(address, ROWS[:5])


def test_a_table_that_is_no_index_is_left_alone(address: str) -> None:
    table = Address.parse(address).table
    with connection(address) as one:
        one.execute(f'CREATE TABLE "{table}_words" (precious int)')
        with pytest.raises(WriteError, match=f"{table}_words exists already and is not an index"):
            made(address, ROWS[:5])
        one.execute(f'SELECT precious FROM "{table}_words"')
    with pytest.raises(FolderError, match=f"table={table} is not an index"):
        DatabaseStore(Address.parse(address))


def test_two_writers(address: str) -> None:
    with (
        new_store(address, plan(), source_of(ROWS)),
        pytest.raises(LockedError, match=r"another writer is at work .*process \d+ on"),
    ):
        made(address, ROWS)
    with (
        made(address, ROWS) as store,
        store.writer(source_of(ROWS[:2])),
        pytest.raises(LockedError, match="another writer"),
    ):
        store.delete([1])


def test_another_model_is_refused(address: str) -> None:
    class Other(ToyEncoder):
        record = EncoderRecord(model="other", key="1" * 64, pooling="sum")

    class Pooled(ToyEncoder):
        record = EncoderRecord(model="toy", key="0" * 64, pooling="max")

    with made(address, ROWS[:5]) as store:
        with pytest.raises(ConfigError, match=r"was built with the model toy .*, not other"):
            Index(store, Other(), "the index")
        with pytest.raises(ConfigError, match="was built with the pooling sum, not max"):
            Index(store, Pooled(), "the index")


@pytest.mark.parametrize("stored", ["int8", "binary"])
def test_types_that_pgvector_does_not_have(address: str, stored: StoredType) -> None:
    with pytest.raises(ConfigError, match=rf"float16 \(halfvec\), not {stored}"):
        made(address, ROWS[:5], stored)


def test_the_graph(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (graphs, stores):
        monkeypatch.setattr(module, "EXACT_BELOW", 400)
    monkeypatch.setattr(graphs, "LATER_ROWS", 10)
    asked = ENCODER.queries([text for text, _ in texts(50, seed=9)])
    where = parse_where(["label!=a"])
    with made(address, ROWS, "float16") as store:
        graph = store.manifest.graph
        assert graph is not None
        assert (graph.rows, graph.recall.queries) == (700, 200)
        assert 0.98 <= graph.recall.low <= graph.recall.mean <= 1
        near = [store.search(asked, 10, one) for one in ((), where)]
        few = store.search(asked[:1], 50, parse_where(["label=a", "year=2003"]))
        all_rows = store.search(asked[:1], 700)
        assert "recall@10" in store.check()[-1]
        monkeypatch.setattr(stores, "EXACT_BELOW", 10_000)
        exact = [store.search(asked, 10, one) for one in ((), where)]
        assert few == store.search(asked[:1], 50, parse_where(["label=a", "year=2003"]))
        assert all_rows == store.search(asked[:1], 700)
        for one, two in zip(near, exact, strict=True):
            assert _share(one, two) > 0.97
        more = texts(100, seed=12)
        with store.writer(source_of(more)) as adding:
            add_rows(adding, more, ENCODER, "more")
    with DatabaseStore(Address.parse(address)) as store:
        assert store.manifest.graph is not None
        assert store.manifest.graph.rows == 800
        (hits,) = store.search(ENCODER.queries([more[17][0]]), 1)
        assert hits[0].text == more[17][0]
    with connection(address) as one:
        one.execute(f'DROP INDEX "{Address.parse(address).table}_graph"')
    with (
        DatabaseStore(Address.parse(address)) as store,
        pytest.raises(FolderError, match="its HNSW index is missing"),
    ):
        store.check()


def _share(one: list[list[Hit]], two: list[list[Hit]]) -> float:
    ids = [[{hit.id for hit in hits} for hits in found] for found in (one, two)]
    return float(np.mean([len(a & b) / len(b) for a, b in zip(*ids, strict=True)]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("DELETE FROM {} WHERE id = 7", "there are 699 rows instead of 700"),
        ("UPDATE {} SET text = 'other' WHERE id = 7", "row 7 has a text that does not fit"),
        ("UPDATE {} SET meta = '[1]' WHERE id = 7", "row 7 has columns that were not written"),
        ("UPDATE {} SET vector = vector + vector WHERE id = 7", "row 7 has a vector that was not"),
        ("DELETE FROM {}_words WHERE term = ''", "words of 0 rows instead of 700"),
    ],
)
def test_check_names_what_was_changed(address: str, change: str, message: str) -> None:
    with made(address, ROWS) as store:
        assert store.check()
        with connection(address) as one:
            one.execute(change.format(Address.parse(address).table))
        with pytest.raises(FolderError, match=message):
            store.check()


def test_a_changed_manifest_is_refused(address: str) -> None:
    made(address, ROWS[:9]).close()
    with connection(address) as one:
        one.execute(
            "UPDATE bertsmith_indexes SET manifest = manifest || %s::jsonb WHERE name = %s",
            ('{"rows": 8}', Address.parse(address).table),
        )
    with pytest.raises(FolderError, match="its row of bertsmith_indexes was changed"):
        DatabaseStore(Address.parse(address))


def test_a_bank_and_an_empty_index(address: str) -> None:
    rows: list[TextRow] = [("w1 w2", {"answer": "one"}), ("w8 w9", {"answer": "two"})]
    with made(address, rows) as store:
        store.record_bank(BankRecord(answers="answer", threshold=0.5))
        index = Index(store, ENCODER, "the bank")
        assert [reply.answer for reply in index.answer(["w8 w9 w9", "w77 w78"])] == ["two", None]
        store.delete([0, 1])
        with pytest.raises(BertsmithError, match="the bank is empty: all its rows were deleted"):
            index.search("w1")
