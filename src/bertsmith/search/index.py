"""Index: a store of rows together with the model that made their vectors."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self, TypeVar

import numpy as np

from bertsmith.errors import ConfigError, FolderError, InputFileError, MissingExtraError
from bertsmith.files.safe_folder import Folder
from bertsmith.labeled.texts import TextRow
from bertsmith.runtime.loading import LoadedModel
from bertsmith.runtime.selection import Precision
from bertsmith.search.encoder import IndexEncoder, ModelEncoder, loaded_model
from bertsmith.search.filters import Conditions, where_of
from bertsmith.search.folder.manifest import read_manifest
from bertsmith.search.folder.store import FolderStore, new_index
from bertsmith.search.postgres.address import Address, is_address
from bertsmith.search.question_bank import QuestionPairs, Reply, reply_of, tuned
from bertsmith.search.store import (
    BankRecord,
    Hit,
    Matrix,
    SourceRecord,
    Store,
    StoredRow,
    StoreManifest,
    StoreWriter,
)
from bertsmith.text.blocks import groups

BLOCK = 4_096  # rows encoded and made safe together: a run that was killed resumes at such a place
BLOCK_CHARACTERS = 16_000_000
FUSION_CONSTANT = 60  # Cormack, Clarke and Buettcher 2009
FUSION_DEPTH = 100  # results of each ranking that are fused
T = TypeVar("T", bound=Hashable)


def open_store(place: str | Path) -> Store:
    """The store at a place: the folder of an index, or the address of one in a database."""
    if is_address(place):
        address = Address.parse(str(place))
        with _needs_psycopg():
            from bertsmith.search.postgres.store import DatabaseStore
        return DatabaseStore(address)
    return FolderStore.open(Path(place))


def new_store(place: str | Path, plan: StoreManifest, source: SourceRecord) -> StoreWriter:
    """Begin, or resume, to build an index at a place from its first source."""
    if is_address(place):
        address = Address.parse(str(place))
        with _needs_psycopg():
            from bertsmith.search.postgres.writer import DatabaseWriter
        return DatabaseWriter(address, plan, source, adding=False)
    return new_index(Path(place), plan, source)


def place_name(place: str | Path) -> str:
    """A place as messages show it: without the password of an address."""
    return Address.parse(str(place)).shown if is_address(place) else str(place)


def named_model(place: str | Path) -> str:
    """The model that an index names, without a look at its rows."""
    if is_address(place):
        with open_store(place) as store:
            return store.manifest.encoder.model
    return read_manifest(Folder.at(Path(place), wanted="the folder of an index")).encoder.model


@contextmanager
def _needs_psycopg() -> Iterator[None]:
    """Around the import of what works with databases."""
    try:
        yield
    except ImportError as fault:
        if (fault.name or "psycopg").partition(".")[0] != "psycopg":
            raise
        raise MissingExtraError("psycopg[binary]", "postgres") from fault


def encoder_of(
    manifest: StoreManifest,
    model: LoadedModel | str | Path | None = None,
    *,
    device: str = "cpu",
    precision: Precision = "auto",
) -> ModelEncoder:
    """The model that an index names, or the given one, with the prompts of the index."""
    known = manifest.encoder
    loaded, name = loaded_model(model or known.model, device=device, precision=precision)
    return ModelEncoder(
        loaded, name, prompt=known.prompt, query_prompt=known.query_prompt, precision=precision
    )


class Index:
    """Search by questions: encodes them with the model of the index and looks in its store."""

    @classmethod
    def open(
        cls,
        place: str | Path,
        model: LoadedModel | str | Path | None = None,
        *,
        device: str = "cpu",
        precision: Precision = "auto",
    ) -> Self:
        """An index with its model: the one it names, or this one if it is the same.

        `place` is a folder, or postgresql://USER@HOST/DATABASE?table=NAME. Every file of a folder
        is compared with its recorded sha256 first; a damaged index, or a model, pooling or prompt
        that is not the index's, is an error.
        """
        store = open_store(place)
        try:
            encoder = encoder_of(store.manifest, model, device=device, precision=precision)
            return cls(store, encoder, place_name(place))
        except BaseException:
            store.close()
            raise

    def __init__(self, store: Store, encoder: IndexEncoder, name: str) -> None:
        store.manifest.encoder.require(encoder.record, name)
        self.store = store
        self.encoder = encoder
        self.name = name

    @property
    def manifest(self) -> StoreManifest:
        """What is stored."""
        return self.store.manifest

    def __len__(self) -> int:
        return self.store.rows

    def search(
        self,
        queries: str | Sequence[str] | Matrix,
        k: int = 10,
        *,
        where: Conditions = None,
        hybrid: bool = False,
        weights: tuple[float, float] = (1.0, 1.0),
    ) -> list[list[Hit]]:
        """The k best rows for each query, the best first; queries are texts or vectors (q, D).

        `where` filters by columns: {"label": "pos"} or "year>=2020". `hybrid` fuses the ranking by
        vectors with that by words (BM25), with these weights; the score is then the fused one.
        """
        self._require_rows()
        conditions = where_of(where)
        if isinstance(queries, np.ndarray):
            if hybrid:
                raise ConfigError("a hybrid search reads the words of queries: give texts")
            return self.store.search(np.atleast_2d(queries), k, conditions)
        texts = [queries] if isinstance(queries, str) else list(queries)
        if not texts:
            return []
        vectors = self.encoder.queries(texts)
        if not hybrid:
            return self.store.search(vectors, k, conditions)
        near = self.store.search(vectors, max(k, FUSION_DEPTH), conditions)
        worded = self.store.search_words(texts, max(k, FUSION_DEPTH), conditions)
        return [
            self._fused(vector, one, two, k, weights)
            for vector, one, two in zip(vectors, near, worded, strict=True)
        ]

    def answer(
        self, questions: str | Sequence[str], *, where: Conditions = None, hybrid: bool = False
    ) -> list[Reply]:
        """The answers of a question bank; one that is not known has no answer."""
        bank = self.manifest.bank
        if bank is None:
            raise ConfigError(
                f"{self.name} is not a question bank; build one with `bertsmith index build "
                "--answer-column COLUMN`"
            )
        nothing = Reply(None, float("nan"), "", -1)
        hits = self.search(questions, 1, where=where, hybrid=hybrid)
        return [reply_of(one, bank) if one else nothing for one in hits]

    def tune(self, pairs: QuestionPairs) -> BankRecord:
        """Store the threshold of "no answer" that fits pairs of questions best."""
        bank = self.manifest.bank
        if bank is None:
            raise ConfigError(
                f"{self.name} is not a question bank: it has no answers; build one with `bertsmith "
                "index build --answer-column COLUMN`"
            )
        asked, known = self.encoder.queries(pairs.first), self.encoder.texts(pairs.second)
        if self.manifest.metric == "cosine":
            asked = asked / np.linalg.norm(asked, axis=1, keepdims=True)
            known = known / np.linalg.norm(known, axis=1, keepdims=True)
        record = tuned(bank, pairs, np.einsum("ij,ij->i", asked, known))
        self.store.record_bank(record)
        return record

    def close(self) -> None:
        """Close the store."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _require_rows(self) -> None:
        if not self.store.rows:
            raise FolderError(
                f"{self.name} is empty: all its rows were deleted; add some with `bertsmith index "
                "add`"
            )

    def _fused(
        self,
        vector: Matrix,
        near: Sequence[Hit],
        worded: Sequence[Hit],
        k: int,
        weights: tuple[float, float],
    ) -> list[Hit]:
        rows = {hit.id: hit for hit in (*worded, *near)}  # those with a similarity come last
        rankings = [[hit.id for hit in near], [hit.id for hit in worded]]
        best = fuse(rankings, weights)[:k]
        unknown = [number for number, _ in best if np.isnan(rows[number].similarity)]
        known = dict(zip(unknown, self.store.similarities(vector, unknown), strict=True))
        return [
            Hit(
                number,
                score,
                rows[number].text,
                rows[number].meta,
                known.get(number, rows[number].similarity),
            )
            for number, score in best
        ]


def add_rows(
    writer: StoreWriter,
    rows: Iterable[TextRow],
    encoder: IndexEncoder,
    source: str,
    *,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Encode the rows of a source and add them, from where an earlier run ended; how many in all.

    If an earlier run added all of them, only what it left unfinished is done, and that is 0. Rows
    are encoded in blocks that depend on the source alone, so a run that was interrupted ends with
    the same vectors.
    """
    done = 0
    if writer.complete:
        writer.finish()
        return done
    for block in _blocks(rows):
        safe = max(0, writer.done - done)
        if safe < len(block):
            first = writer.first_id + done
            vectors = encoder.texts([text for text, _ in block])
            stored = [StoredRow(first + i, text, meta) for i, (text, meta) in enumerate(block)]
            writer.append(stored[safe:], vectors[safe:])
        done += len(block)
        if progress is not None:
            progress(done)
    if not done:
        raise InputFileError(f"{source} holds no texts")
    writer.finish()
    return done


def _blocks(rows: Iterable[TextRow]) -> Iterator[list[TextRow]]:
    return groups(rows, BLOCK, size=lambda row: len(row[0]), most_size=BLOCK_CHARACTERS)


def fuse(rankings: Sequence[Sequence[T]], weights: Sequence[float]) -> list[tuple[T, float]]:
    """Reciprocal rank fusion: items by the sum of weight / (60 + rank), ranks from 1, best first.

    What the scores of a ranking mean does not count. Items of equal sums stay in the order of the
    rankings.
    """
    if len(rankings) != len(weights) or any(weight < 0 for weight in weights) or not sum(weights):
        raise ConfigError(f"weights of rankings are numbers from 0, not all 0, not {weights}")
    sums: dict[T, float] = {}
    for ranking, weight in zip(rankings, weights, strict=True):
        for rank, item in enumerate(ranking, start=1):
            sums[item] = sums.get(item, 0.0) + weight / (FUSION_CONSTANT + rank)
    return sorted(sums.items(), key=lambda pair: -pair[1])
