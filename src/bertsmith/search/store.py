"""What every index offers, wherever its rows lie: in a folder, or in a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, Self, get_args

import numpy as np
from numpy.typing import NDArray

from bertsmith.config import Settings
from bertsmith.errors import ConfigError
from bertsmith.files.digest import json_digest
from bertsmith.search.filters import Where

Matrix = NDArray[np.float32]
StoredType = Literal["float32", "float16", "int8", "binary"]
STORED_TYPES: tuple[StoredType, ...] = get_args(StoredType)
Metric = Literal["cosine", "dot"]


@dataclass(frozen=True, slots=True)
class StoredRow:
    """A text with its other columns; `id` counts the rows ever added, from 0."""

    id: int
    text: str
    meta: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Hit:
    """A result: `score` is what the results are ranked by, `similarity` that of the vectors."""

    id: int
    score: float
    text: str
    meta: Mapping[str, str]
    similarity: float


class EncoderRecord(Settings):
    """What turned the texts of an index into vectors; searches must use the same."""

    model: str
    """The name or path that was given; for messages, and to open the index without naming it."""
    key: str
    """The sha256 of everything in the model folder that decides a vector."""
    pooling: str
    prompt: str | None = None
    """Name of the prompt in front of the texts."""
    query_prompt: str | None = None
    """Name of the prompt in front of the queries."""
    precision: str = "auto"

    def require(self, other: EncoderRecord, index: str) -> None:
        """Refuse another encoder, naming what differs."""
        ways = (
            ("pooling", self.pooling, other.pooling, "use the model folder it was built with"),
            ("model", self.key, other.key, "use the model it was built with, or build a new index"),
            ("prompt", self.prompt, other.prompt, "leave --prompt out, or build a new index"),
            (
                "query prompt",
                self.query_prompt,
                other.query_prompt,
                "leave --query-prompt out, or build a new index",
            ),
        )
        for what, own, given, way in ways:
            if own != given:
                mine, yours = (self._model(), other._model()) if what == "model" else (own, given)
                raise ConfigError(
                    f"{index} was built with the {what} {mine!s}, not {yours!s}; {way}"
                )
        if "auto" not in (self.precision, other.precision) and self.precision != other.precision:
            raise ConfigError(
                f"{index} was built in the precision {self.precision}, not {other.precision}; "
                "leave --precision out, or build a new index"
            )

    def _model(self) -> str:
        return f"{self.model} ({self.key[:12]})"


class SourceRecord(Settings):
    """The file that rows come from; a run that was interrupted resumes only with the same one."""

    name: str
    sha256: str
    reading: str = ""
    """How it was read: column, encoding, format."""
    engine: str = ""
    """What computed the vectors; of one engine they are equal to the last bit."""


class BankRecord(Settings):
    """A question bank: the texts are questions, a column holds their answers."""

    answers: str
    """The column with the answers."""
    threshold: float | None = None
    """The least similarity of a question that is answered; None answers every question."""
    f1: float | None = None
    """F1 at the threshold on the pairs it was tuned on."""
    pairs: int = 0
    pairs_file: str | None = None


class StoreManifest(Settings):
    """What a store records about itself, whatever it is made of."""

    encoder: EncoderRecord
    dimension: int
    metric: Metric
    stored: StoredType
    rows: int
    """Rows that a search can return: without the deleted ones."""
    next_id: int
    columns: tuple[str, ...] = ()
    segmenter: str | None = None
    """How Chinese words are found for BM25: jieba or bigrams; None: words are not indexed."""
    bank: BankRecord | None = None
    sources: tuple[SourceRecord, ...] = ()


def work_key(manifest: StoreManifest, source: SourceRecord) -> str:
    """What a writer does, as a digest: a run that was interrupted resumes only the same work."""
    return json_digest(
        [
            manifest.encoder.model_dump(mode="json"),
            source.model_dump(mode="json"),
            [manifest.dimension, manifest.metric, manifest.stored, manifest.segmenter],
        ]
    )


def is_result(current: StoreManifest, wanted: StoreManifest, source: SourceRecord) -> bool:
    """Whether an index is what a build of this source would make."""
    return current.sources == (source,) and work_key(current, source) == work_key(wanted, source)


def check_k(k: int) -> None:
    """Refuse a number of results that makes no sense."""
    if k < 1:
        raise ConfigError(f"k must be at least 1, not {k}")


class StoreWriter(Protocol):
    """Adds the rows of one source, in order; whatever ends the process, added rows are safe."""

    @property
    def done(self) -> int:
        """How many rows of the source are safe: the caller skips so many and continues."""

    @property
    def complete(self) -> bool:
        """Whether an earlier run added all rows of the source; `finish` is then all there is."""

    @property
    def replaced(self) -> bool:
        """Whether unfinished work with another source or other settings was discarded."""

    @property
    def first_id(self) -> int:
        """The id of the first row of the source."""

    def append(self, rows: Sequence[StoredRow], vectors: Matrix) -> None:
        """Add rows and their vectors (n, D); safe once this returns."""

    def finish(self) -> None:
        """Make all rows of the source searchable at once."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class Store(Protocol):
    """Rows with vectors that can be searched; searches see the rows there were at opening."""

    @property
    def manifest(self) -> StoreManifest:
        """What is stored."""

    @property
    def rows(self) -> int:
        """Rows that a search can return."""

    @property
    def dimension(self) -> int:
        """D, the width of a vector."""

    def writer(self, source: SourceRecord) -> StoreWriter:
        """Begin to add the rows of a source, or resume it; one writer at a time."""

    def delete(self, ids: Sequence[int]) -> int:
        """Delete rows by id; how many there were. An id that does not exist is an error."""

    def search(self, vectors: Matrix, k: int, where: Where = ()) -> list[list[Hit]]:
        """The k nearest rows for each query vector (q, D), the best first, ties by id."""

    def search_words(self, queries: Sequence[str], k: int, where: Where = ()) -> list[list[Hit]]:
        """The k best rows for each query by BM25; the similarity of these hits is nan."""

    def similarities(self, vector: Matrix, ids: Sequence[int]) -> list[float]:
        """The similarity of a query vector (D,) to the rows of these ids."""

    def matching(self, where: Where) -> list[int]:
        """The ids of all rows that match."""

    def texts(self) -> Iterator[StoredRow]:
        """All rows, in the order of their ids."""

    def record_bank(self, bank: BankRecord | None) -> None:
        """Store how questions are answered."""

    def check(self) -> list[str]:
        """Read everything and compare it with the manifest; what was checked, as lines."""

    def close(self) -> None:
        """Release files or connections."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...
