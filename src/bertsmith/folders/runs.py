"""Several runs of one job, by seed or fold, below the folder of its best model."""

from __future__ import annotations

from pathlib import Path

RUNS = ("seeds", "folds")  # where they lie
FIGURES = "figures.json"  # in the folder of each of them that is finished


def finished_runs(out: Path) -> list[Path]:
    """The folders of the finished runs below a folder, in their order; of seeds, else of folds."""
    for kind in RUNS:
        runs = [path.parent for path in (out / kind).glob(f"*/{FIGURES}")]
        if runs:
            return sorted(runs, key=lambda path: (len(path.name), path.name))
    return []
