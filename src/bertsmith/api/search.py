"""Indexes of texts: building, adding, deleting, checking, searching; the most similar pairs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from bertsmith.errors import ConfigError, InputFileError
from bertsmith.files.csv_records import columns_there
from bertsmith.files.digest import file_digest
from bertsmith.labeled.read.reader import OnError
from bertsmith.labeled.spec import DataSpec
from bertsmith.labeled.texts import TextAccount, TextRow, TextRows, read_text_rows
from bertsmith.runtime.embedder import EncodingAccount
from bertsmith.runtime.loading import LoadedModel
from bertsmith.runtime.selection import Precision
from bertsmith.search.encoder import ModelEncoder, loaded_model
from bertsmith.search.exact import scan
from bertsmith.search.filters import Conditions, where_of
from bertsmith.search.index import (
    Index,
    add_rows,
    encoder_of,
    new_store,
    open_store,
    place_name,
)
from bertsmith.search.pairs import SimilarPair
from bertsmith.search.pairs import similar_pairs as pairs_of_vectors
from bertsmith.search.question_bank import read_pairs
from bertsmith.search.store import (
    BankRecord,
    Hit,
    Matrix,
    Metric,
    SourceRecord,
    StoredType,
    StoreManifest,
    StoreWriter,
)
from bertsmith.search.words import usable_segmenter

Model = LoadedModel | str | Path


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexOptions:
    """What an index stores."""

    dtype: StoredType = "float16"
    """float32 or float16; int8 and binary scan small codes and compare float16 rows again."""
    metric: Metric | None = None
    """cosine or dot; the model's if unset."""
    prompt: str | None = None
    query_prompt: str | None = None
    words: bool = True
    """Index the words, too, for hybrid search."""
    answer_column: str | None = None
    """The column with the answers, which makes the index a question bank."""


@dataclass(slots=True, kw_only=True)
class IndexWork:
    """What a run did: its rows, those of an interrupted run before it, and how texts were read."""

    rows: int = 0
    resumed: int = 0
    replaced: bool = False
    complete: bool = False
    """An earlier run had added all rows."""
    reading: TextAccount | None = None
    encoding: EncodingAccount | None = None
    manifest: StoreManifest | None = None


Watch = Callable[[int, float | None], None]
"""Called with the number of rows done, and the share of the file where it is known."""


def build_index(
    file: str | Path,
    model: Model,
    out: str | Path,
    *,
    reading: DataSpec | None = None,
    on_error: OnError = "stop",
    options: IndexOptions | None = None,
    precision: Precision = "auto",
    watch: Watch | None = None,
) -> IndexWork:
    """Encode a file of texts and write an index, in memory that does not grow with the file.

    `out` is a folder, or postgresql://USER@HOST/DATABASE?table=NAME (extra `postgres`). A
    run that was interrupted is resumed by the same call, and ends with the same vectors and texts.
    From 100,000 rows on, a graph makes searches fast (in a folder by the extra `search`); its
    recall is measured and stored. How the file is read is guessed where `reading` leaves it open.
    """
    path, wanted = Path(file), options or IndexOptions()
    rows = read_text_rows(path, reading, on_error=on_error)
    opened, answers = _checked(rows, path, wanted.answer_column)
    loaded, name = loaded_model(model, precision=precision)
    encoder = ModelEncoder(
        loaded, name, prompt=wanted.prompt, query_prompt=wanted.query_prompt, precision=precision
    )
    manifest = StoreManifest(
        encoder=encoder.record,
        dimension=encoder.dimension,
        metric=wanted.metric or encoder.metric,
        stored=wanted.dtype,
        rows=0,
        next_id=0,
        segmenter=usable_segmenter() if wanted.words else None,
        bank=None if answers is None else BankRecord(answers=answers),
    )
    source = _source(path, rows.spec, encoder)
    with new_store(out, manifest, source) as writer:
        work = _add(writer, opened, rows, encoder, watch)
    with open_store(out) as store:
        work.manifest = store.manifest
    return work


def add_to_index(
    index: str | Path,
    file: str | Path,
    *,
    model: Model | None = None,
    reading: DataSpec | None = None,
    on_error: OnError = "stop",
    again: bool = False,
    precision: Precision = "auto",
    watch: Watch | None = None,
) -> IndexWork:
    """Add the texts of a file; searches see them all at once, when all are there.

    A file that was added before is refused unless `again` says that it is meant.
    """
    path = Path(file)
    rows = read_text_rows(path, reading, on_error=on_error)
    with open_store(index) as store:
        bank = store.manifest.bank
        opened, _ = _checked(rows, path, None if bank is None else bank.answers)
        encoder = encoder_of(store.manifest, model, precision=precision)
        store.manifest.encoder.require(encoder.record, place_name(index))
        source = _source(path, rows.spec, encoder)
        with store.writer(source) as writer:
            added = {one.sha256 for one in store.manifest.sources}
            if source.sha256 in added and not (writer.complete or writer.done or again):
                raise ConfigError(
                    f"{path} was added to {place_name(index)} before; --again adds its rows once "
                    "more"
                )
            work = _add(writer, opened, rows, encoder, watch)
    with open_store(index) as store:
        work.manifest = store.manifest
    return work


def delete_from_index(
    index: str | Path, ids: Sequence[int] = (), *, where: Conditions = None
) -> int:
    """Delete rows by id, or all rows that match conditions; how many."""
    conditions = where_of(where)
    if bool(ids) == bool(conditions):
        raise ConfigError("give the ids of rows to delete, or conditions (--where), not both")
    with open_store(index) as store:
        chosen = list(ids) if ids else store.matching(conditions)
        return store.delete(chosen) if chosen else 0


def check_index(index: str | Path) -> list[str]:
    """Compare every file with its recorded sha256 and every part with the others; a summary.

    In a database, that the rows, their words and what is recorded about them fit together.
    """
    with open_store(index) as store:
        return store.check()


def tune_question_bank(
    index: str | Path, pairs: str | Path, *, model: Model | None = None
) -> BankRecord:
    """Choose the similarity below which a question has no answer, by pairs of questions.

    A line is `question<TAB>question<TAB>1` if they ask the same, else 0.
    """
    read = read_pairs(Path(pairs))
    with Index.open(index, model) as opened:
        return opened.tune(read)


def search_index(
    index: Index | str | Path,
    queries: str | Sequence[str],
    k: int = 10,
    *,
    where: Conditions = None,
    hybrid: bool = False,
) -> list[list[Hit]]:
    """The k best rows of an index for each query, the best first."""
    if isinstance(index, Index):
        return index.search(queries, k, where=where, hybrid=hybrid)
    with Index.open(index) as opened:
        return opened.search(queries, k, where=where, hybrid=hybrid)


def nearest(queries: Matrix, vectors: Matrix, k: int = 10) -> list[list[tuple[int, float]]]:
    """The k rows of a matrix (n, D) nearest to each query (q, D) by cosine: (row, similarity)."""
    unit = [np.atleast_2d(one).astype(np.float32) for one in (queries, vectors)]
    norms = [np.linalg.norm(one, axis=1, keepdims=True) for one in unit]
    if any(not np.isfinite(norm).all() or not norm.all() for norm in norms):
        raise ConfigError("a vector is zero or not finite, so it cannot be compared")
    asked, rows = (one / norm for one, norm in zip(unit, norms, strict=True))
    found = scan([(0, rows, None)], asked, k)
    return [
        [(int(row), float(rows[row] @ query)) for row in positions]
        for query, positions in zip(asked, found, strict=True)
    ]


def similar_pairs(
    texts: Sequence[str],
    model: Model,
    count: int = 10,
    *,
    least: float = -1.0,
    skip_equal: bool = False,
    watch: Callable[[int], None] | None = None,
    account: EncodingAccount | None = None,
) -> list[SimilarPair]:
    """The most similar pairs of texts by cosine; rows are counted from 0.

    `skip_equal` compares only the first of equal texts.
    """
    if len(texts) < 2:
        raise InputFileError(f"a pair needs two texts, and there is {len(texts)}")
    loaded, _ = loaded_model(model)
    vectors = loaded.encode(texts, progress=watch, account=account)
    return pairs_of_vectors(vectors, count, least=least, texts=texts if skip_equal else None)


def _source(path: Path, how: DataSpec, encoder: ModelEncoder) -> SourceRecord:
    reading = how.model_dump(mode="json", exclude={"why"}, exclude_defaults=True)
    return SourceRecord(
        name=path.name,
        sha256=file_digest(path),
        reading=json.dumps(reading, ensure_ascii=False),
        engine=encoder.settle(path.stat().st_size),
    )


def _checked(
    rows: TextRows, path: Path, answers: str | None
) -> tuple[Iterator[TextRow], str | None]:
    """The rows, after a look at the first: faults of the file show before the long work.

    And the column with the answers, which may be given by its number.
    """
    first = next(rows, None)
    if first is None:
        raise InputFileError(f"{path} holds no texts")
    known = [name for name in (answers, f"column {answers}") if name in first[1]]
    if answers is not None and not known:
        there = columns_there(list(first[1]), len(first[1])) if first[1] else "there is no other"
        raise InputFileError(
            f"{path} has no column {answers!r} with answers next to the questions; {there}"
        )
    return chain([first], rows), known[0] if known else None


def _add(
    writer: StoreWriter,
    rows: Iterator[TextRow],
    reader: TextRows,
    encoder: ModelEncoder,
    watch: Watch | None,
) -> IndexWork:
    work = IndexWork(
        resumed=writer.done,
        replaced=writer.replaced,
        complete=writer.complete,
        reading=reader.account,
        encoding=EncodingAccount(),
    )
    encoder.account = work.encoding

    def progress(done: int) -> None:
        if watch is not None:
            watch(done, reader.share)

    work.rows = add_rows(writer, rows, encoder, "the file", progress=progress)
    return work
