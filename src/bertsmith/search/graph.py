"""Approximate search by an HNSW graph, computed by usearch (extra `search`).

The graph holds float16 and is derived from the vectors: a row is known by its position, deleted
rows stay in it and are left out of the results, and every result is compared again by the stored
vectors.
"""

from __future__ import annotations

import importlib
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from bertsmith.errors import FolderError, MissingExtraError
from bertsmith.hardware.environment import thread_count
from bertsmith.search.exact import Positions
from bertsmith.search.store import Matrix

CONNECTIVITY = 16
EXPANSION_ADD = 128
LIBRARY = "usearch"
CHUNK = 8_192


class Graph(Protocol):
    """Finds rows near a vector; what the library behind it must offer."""

    def add(self, first: int, vectors: Matrix) -> None:
        """Add rows (n, D) at the positions from `first` on."""

    def search(self, vectors: Matrix, count: int, expansion: int) -> list[Positions]:
        """The positions of about the `count` nearest rows for each vector (q, D)."""

    def save(self, path: Path) -> None:
        """Write the graph to a file."""


class UsearchGraph:
    """An HNSW graph of usearch, by inner products."""

    def __init__(self, dimension: int) -> None:
        self._index = _library().Index(
            ndim=dimension,
            metric="ip",
            dtype="f16",
            connectivity=CONNECTIVITY,
            expansion_add=EXPANSION_ADD,
        )

    def add(self, first: int, vectors: Matrix) -> None:
        """Add rows (n, D) at the positions from `first` on."""
        keys = np.arange(first, first + len(vectors), dtype=np.uint64)
        self._index.add(keys, vectors, threads=thread_count())

    def search(self, vectors: Matrix, count: int, expansion: int) -> list[Positions]:
        """The positions of about the `count` nearest rows for each vector (q, D)."""
        self._index.expansion_search = max(expansion, count)
        one_by_one = len(vectors) == 1
        found = self._index.search(vectors[0] if one_by_one else vectors, count, threads=0)
        if one_by_one:
            return [np.asarray(found.keys, dtype=np.int64)]
        keys = np.asarray(found.keys, dtype=np.int64)
        return [row[:n] for row, n in zip(keys, np.asarray(found.counts), strict=True)]

    def save(self, path: Path) -> None:
        """Write the graph to a file."""
        self._index.save(str(path))

    def read(self, file: io.FileIO, *, more: bool) -> None:
        """Read a graph whose sha256 was checked: the library trusts every byte.

        It stays mapped into memory, or is copied there so that `more` rows can be added.
        """
        self._mapped = np.memmap(file, dtype=np.uint8, mode="r")
        try:
            if more:
                self._index.load(self._mapped)
            else:
                self._index.view(self._mapped)
        except RuntimeError as fault:
            raise FolderError(f"{file.name}: {fault}; build the index again") from fault


def library_version() -> str:
    """The version of the library."""
    return str(importlib.import_module("usearch").__version__)


def fill(graph: Graph, rows: Iterable[tuple[int, Matrix]]) -> None:
    """Add rows (first position, (n, D)) in chunks of bounded size."""
    for first, vectors in rows:
        for start in range(0, len(vectors), CHUNK):
            part = np.asarray(vectors[start : start + CHUNK], dtype=np.float32)
            graph.add(first + start, part)


def _library() -> Any:
    try:
        return importlib.import_module("usearch.index")
    except ModuleNotFoundError as fault:
        raise MissingExtraError("usearch", "search") from fault
