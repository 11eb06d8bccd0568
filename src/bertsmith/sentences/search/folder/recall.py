"""When an index gets a graph, and how well it finds what an exact search finds."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertsmith.errors import WriteError
from bertsmith.files.atomic_file import sync
from bertsmith.metrics.significance import bootstrap
from bertsmith.sentences.search.exact import Flags
from bertsmith.sentences.search.folder.candidates import EXACT_BELOW, Candidates
from bertsmith.sentences.search.folder.manifest import FolderManifest, RecallRecord
from bertsmith.sentences.search.graph import Graph

K = 10
QUERIES = 200
WANTED = 0.98
EXPANSIONS = (64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048)
LATER_SHARE = 0.1  # rows added after the graph was built, which are scanned at every search
LATER_ROWS = 20_000


def graph_is_due(manifest: FolderManifest) -> bool:
    """Whether the index is large enough for a graph and has none, or one of too few rows."""
    if manifest.stored not in ("float32", "float16") or manifest.stored_rows < EXACT_BELOW:
        return False
    if manifest.graph is None:
        return True
    later = manifest.stored_rows - manifest.graph.rows
    return later > max(LATER_ROWS, LATER_SHARE * manifest.graph.rows)


def choose_expansion(
    graph: Graph, candidates: Candidates, alive: Flags | None
) -> tuple[int, RecallRecord]:
    """The least search effort whose recall is surely enough, and that recall.

    Rows of the index are the queries; each is left out of its own results. The lower end of the
    95 % interval must reach 0.98, or the effort is the largest one.
    """
    positions = _sample(candidates.rows, alive)
    queries = np.stack([candidates.vector(position) for position in positions])
    true = candidates.exact(queries, K + 1, None)
    wanted = [set(row[row != own][:K]) for row, own in zip(true, positions, strict=True)]
    for expansion in EXPANSIONS:
        near = graph.search(queries, K + 1, expansion)
        shares = np.array(
            [
                len(want & set(row[row != own][:K])) / len(want)
                for want, row, own in zip(wanted, near, positions, strict=True)
            ]
        )
        recall = bootstrap(_mean_of(shares), len(shares))
        if recall.low >= WANTED:
            break
    record = RecallRecord(
        k=K,
        queries=len(shares),
        mean=round(recall.value, 4),
        low=round(recall.low, 4),
        high=round(recall.high, 4),
    )
    return expansion, record


def _mean_of(shares: NDArray[np.float64]) -> Callable[[NDArray[np.int64]], float]:
    return lambda rows: float(shares[rows].mean())


def save_synced(graph: Graph, path: Path) -> None:
    """Write a graph so that its file is whole or not there."""
    staged = path.with_name(f".{path.name}.{secrets.token_hex(6)}.partial")
    try:
        graph.save(staged)
        sync(staged)
        staged.replace(path)
        sync(path.parent)
    except (OSError, RuntimeError) as fault:
        staged.unlink(missing_ok=True)
        raise WriteError(
            f"cannot write {path}: {fault}; the index is searched exactly until the same command "
            "builds its graph"
        ) from fault


def _sample(rows: int, alive: Flags | None) -> NDArray[np.int64]:
    there = np.arange(rows) if alive is None else np.flatnonzero(alive)
    drawn = np.random.default_rng(0).choice(there, min(QUERIES, len(there)), replace=False)
    return np.sort(drawn)
