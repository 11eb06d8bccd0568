"""The record of a trained folder, proof.json: how it was made, and what its kind proves of it.

Pages and model cards are written from it alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic

import torch

from bertsmith import __version__
from bertsmith.files.strict_json import json_values, write_json
from bertsmith.labeled.pairs.splits import PairSplits
from bertsmith.training.execution.execution import Execution
from bertsmith.training.learner import Recipe, Result, Rows, TrainingJob
from bertsmith.training.loop.run import Outcome

RECORD = "proof.json"
CURVE_POINTS = 400  # of each kind of line that the record keeps
CURVES = ("train", "eval", "final")
Record = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Making(Generic[Recipe, Rows, Result]):
    """How a folder was trained: what the record adds to the folder itself.

    `run` is the folder of the run that the model comes from: the job's own, or that of one of
    `several`, whose sections (seeds, interval, folds) they are.
    """

    job: TrainingJob[Recipe, Rows]
    run: Path
    outcome: Outcome
    finished: Result
    execution: Execution
    several: Mapping[str, Any] = field(default_factory=dict)

    @property
    def device(self) -> str:
        """Where the folder is evaluated."""
        return str(self.execution.device)


def write_record(
    kind: str, making: Making[Recipe, Rows, Result], proof: Mapping[str, Any]
) -> Record:
    """Write proof.json: what all kinds record, with the sections that a kind gives.

    A section `training` of a kind is laid over the common one.
    """
    job = making.job
    sections = {name: part for name, part in proof.items() if name != "training"}
    record = json_values(
        {
            "bertsmith": __version__,
            "kind": kind,
            "task": job.task,
            "model": job.model,
            "recipe": job.recipe.model_dump(mode="json"),
            "training": {**training_section(making), **proof.get("training", {})},
            "curves": curves(making.run / "log.jsonl"),
            **sections,
            **making.several,
        }
    )
    write_json(job.folder / RECORD, record)
    return dict(record)


def training_section(making: Making[Recipe, Rows, Result]) -> dict[str, Any]:
    """From result.json, which the loop writes when it is done."""
    try:
        result = json.loads((making.run / "result.json").read_bytes())
    except (OSError, ValueError):
        result = {}
    seconds, tokens = result.get("seconds"), result.get("tokens")
    best = result.get("best") or {}
    return {
        "steps": result.get("step"),
        "rate": result.get("rate"),
        "seconds": seconds,
        "tokens": tokens,
        "tokens_per_second": tokens / seconds if tokens and seconds else None,
        "precision": making.execution.precision.name,
        "threads": torch.get_num_threads(),
        "best_step": best.get("step"),
        "best_weights": best.get("weights"),
        "seed": making.job.recipe.run.seed,
    }


def pairs_section(rows: PairSplits, notes: Sequence[str]) -> dict[str, Any]:
    """The section `data` of pairs of texts."""
    sides = {"train": rows.train, "dev": rows.dev, "test": rows.test}
    return {
        "files": {name: data.source for name, data in sides.items() if data is not None},
        "rows": {name: len(data or ()) for name, data in sides.items()},
        "notes": [*rows.train.notes, *rows.notes, *notes],
    }


def curves(log: Path) -> list[dict[str, Any]]:
    """The lines of a log that draw curves, thinned evenly; steps that were run again count once.

    A run that was killed repeats the steps since its last checkpoint: the later lines are those of
    the model.
    """
    try:
        lines = log.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    rows = [json.loads(line) for line in lines if line.strip()]
    lines_of_curves: list[dict[str, Any]] = []
    for kind in CURVES:
        by_step = {row.get("step", 0): row for row in rows if row.get("kind") == kind}
        some = [by_step[step] for step in sorted(by_step)]
        step = max(1, -(-len(some) // CURVE_POINTS))
        thinned = some[::step]
        if some and thinned[-1] is not some[-1]:
            thinned.append(some[-1])
        lines_of_curves += thinned
    return sorted(lines_of_curves, key=lambda row: row.get("step", 0))
