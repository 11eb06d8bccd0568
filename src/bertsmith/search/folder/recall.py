"""When an index gets a graph, and how well it finds what an exact search finds."""

from __future__ import annotations

import secrets
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertsmith.errors import WriteError
from bertsmith.files.atomic_file import sync
from bertsmith.search.exact import Flags
from bertsmith.search.folder.candidates import Candidates
from bertsmith.search.folder.manifest import FolderManifest
from bertsmith.search.graph import Graph
from bertsmith.search.recall import EXACT_BELOW, QUERIES, K, RecallRecord, least_effort

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
    """The least search effort whose recall is surely enough, and that recall."""
    positions = _sample(candidates.rows, alive)
    queries = np.stack([candidates.vector(position) for position in positions])
    true = candidates.exact(queries, K + 1, None)
    return least_effort(
        positions.tolist(),
        [row.tolist() for row in true],
        lambda effort: [row.tolist() for row in graph.search(queries, K + 1, effort)],
        EXPANSIONS,
    )


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
