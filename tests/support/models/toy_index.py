"""A small index without a model: words are random vectors, a text is their sum."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertsmith.files.digest import json_digest
from bertsmith.labeled.texts import TextRow
from bertsmith.search.folder.store import FolderStore, new_index
from bertsmith.search.index import add_rows
from bertsmith.search.store import (
    EncoderRecord,
    Metric,
    SourceRecord,
    StoredType,
    StoreManifest,
)
from bertsmith.search.words import Words

DIMENSION = 70  # not a multiple of 64: sign bits are filled up
WORDS = Words("bigrams")


@cache
def word_vector(word: str) -> NDArray[np.float32]:
    drawn = np.random.default_rng(zlib.crc32(word.encode())).standard_normal(DIMENSION)
    return drawn.astype(np.float32)


class ToyEncoder:
    record = EncoderRecord(model="toy", key="0" * 64, pooling="sum")
    dimension = DIMENSION

    def texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        empty = np.zeros(DIMENSION, np.float32)
        return np.stack([sum(map(word_vector, WORDS.of(text)), empty) for text in texts])

    queries = texts


def plan(stored: StoredType = "float32", metric: Metric = "cosine") -> StoreManifest:
    return StoreManifest(
        encoder=ToyEncoder.record,
        dimension=DIMENSION,
        metric=metric,
        stored=stored,
        rows=0,
        next_id=0,
        segmenter="bigrams",
    )


def source_of(rows: Sequence[TextRow]) -> SourceRecord:
    return SourceRecord(name="rows", sha256=json_digest([[t, dict(m)] for t, m in rows]))


def build(path: Path, rows: Sequence[TextRow], stored: StoredType = "float32") -> FolderStore:
    with new_index(path, plan(stored), source_of(rows)) as writer:
        add_rows(writer, rows, ToyEncoder(), "rows")
    return FolderStore.open(path)


def texts(count: int, seed: int = 0) -> list[TextRow]:
    """Texts of 3 to 8 of 300 words, with a column of three labels and a year."""
    random = np.random.default_rng(seed)
    rows: list[TextRow] = []
    for number in range(count):
        words = random.integers(0, 300, random.integers(3, 9))
        meta = {"label": "abc"[number % 3], "year": str(2000 + number % 20)}
        rows.append((" ".join(f"w{word}" for word in words), meta))
    return rows


def brute_force(rows: Sequence[TextRow], query: str, k: int) -> list[int]:
    vectors = ToyEncoder().texts([text for text, _ in rows]).astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    asked = ToyEncoder().queries([query])[0].astype(np.float64)
    scores = (vectors @ (asked / np.linalg.norm(asked))).astype(np.float32)
    return np.lexsort((np.arange(len(rows)), -scores))[:k].tolist()


def content(path: Path) -> dict[str, bytes]:
    """The bytes of an index but its lock, which is nobody's data."""
    files = (p for p in sorted(path.rglob("*")) if p.is_file() and p.name != "lock")
    return {p.relative_to(path).as_posix(): p.read_bytes() for p in files}
