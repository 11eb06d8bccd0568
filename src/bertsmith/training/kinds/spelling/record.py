"""What is proved of a corrector: figures with intervals, a baseline of bigrams, and texts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bertsmith.files.atomic_file import write_staged
from bertsmith.labeled.errors.confusions import Confusions, confusions_of_pairs
from bertsmith.labeled.errors.rows import given_confusions, wrong_places
from bertsmith.labeled.pairs.pairs import SentenceData
from bertsmith.labeled.pairs.splits import PairSplits
from bertsmith.metrics.arrays import Floats, Ints
from bertsmith.metrics.correction import CORRECTIONS
from bertsmith.metrics.significance import bootstrap
from bertsmith.runtime.corrector import Corrector
from bertsmith.tasks.spelling.bigrams import BigramCorrector
from bertsmith.tasks.spelling.edits import Edit, places_of, tuned_threshold
from bertsmith.tasks.spelling.settings import ThresholdSettings
from bertsmith.training.kinds.spelling.learner import FinishedCorrector, SpellingJob
from bertsmith.training.kinds.spelling.recipe import CorrectRecipe
from bertsmith.training.record import Making, pairs_section

SpellingMaking = Making[CorrectRecipe, PairSplits, FinishedCorrector]
SAMPLES = 200  # draws of each interval
EXAMPLES = 40  # texts that the report shows


def prove_corrections(making: SpellingMaking) -> dict[str, Any]:
    """Evaluate the finished folder on dev and test rows; write the texts with their corrections.

    The folder is read from the disk, so the figures are those its user gets.
    """
    job = making.job
    corrector = Corrector.load(job.folder, device=making.device)
    baseline = Baseline.of(job)
    sides: dict[str, Any] = {"dev": None, "test": None}
    for name, data in (("dev", job.rows.dev), ("test", job.rows.test)):
        if data is not None and len(data):
            proposals = corrector.proposals([row[0] for row in data.rows])
            write_corrections(job.folder / f"corrected.{name}.jsonl", data, proposals, corrector)
            sides[name] = {
                **evaluated(data, proposals, corrector.threshold),
                "baselines": {"bigrams": baseline.figures(data)},
            }
    return {
        "data": pairs_section(job.rows, making.finished.notes),
        "threshold": making.finished.threshold,
        **sides,
    }


class Baseline:
    """Character bigrams of the right training texts, its threshold tuned on the same dev rows.

    The confusions are those that errors were planted with, else those of the training pairs.
    """

    def __init__(self, corrector: BigramCorrector, threshold: float) -> None:
        self._corrector = corrector
        self._threshold = threshold

    @classmethod
    def of(cls, job: SpellingJob) -> Baseline:
        """The baseline of a training."""
        rows = job.rows.train.rows
        texts = [row[1] for row in rows]
        corrector = BigramCorrector(texts, _confusions(job, texts))
        truth = [wrong_places(*row[:2]) for row in job.rows.dev.rows]
        proposals = corrector.proposals([row[0] for row in job.rows.dev.rows])
        return cls(corrector, tuned_threshold(truth, proposals, job.recipe.threshold))

    def figures(self, data: SentenceData) -> dict[str, float]:
        """Its figures on some rows."""
        proposals = self._corrector.proposals([row[0] for row in data.rows])
        truth = [wrong_places(*row[:2]) for row in data.rows]
        return CORRECTIONS.score(truth, [places_of(e, self._threshold) for e in proposals])


def _confusions(job: SpellingJob, texts: Sequence[str]) -> Confusions:
    named = job.recipe.errors.confusions
    if named is not None:
        return given_confusions(named, texts)
    return confusions_of_pairs(job.rows.train.rows)


def evaluated(
    data: SentenceData, proposals: Sequence[Sequence[Edit]], threshold: float
) -> dict[str, Any]:
    """Figures of rows from a threshold on, and what other false alarm rates would cost."""
    truth = [wrong_places(*row[:2]) for row in data.rows]
    said = [places_of(edits, threshold) for edits in proposals]
    table = CORRECTIONS.rows(truth, said, ())
    figures = CORRECTIONS.figures(table, ())
    shown = ("correction_f1", "detection_f1", "false_alarm_rate")
    return {
        "rows": len(data),
        "wrong_rows": sum(bool(one) for one in truth),
        "threshold": threshold,
        "main": CORRECTIONS.main,
        "figures": figures,
        "intervals": {name: _interval(table, name) for name in shown},
        "false_alarms": _trade(truth, proposals),
        "examples": [
            {"wrong": row[0], "corrected": _applied(row[0], one), "right": row[1]}
            for row, one, want in zip(data.rows, said, truth, strict=True)
            if one or want
        ][:EXAMPLES],
    }


def _trade(
    truth: Sequence[dict[int, str]], proposals: Sequence[Sequence[Edit]]
) -> list[dict[str, float]]:
    """F1 at thresholds that allow so many false alarms."""
    rows = []
    for allowed in (0.01, 0.02, 0.05, 0.1, 0.2):
        settings = ThresholdSettings(goal="false_alarms", false_alarms=allowed)
        threshold = tuned_threshold(truth, proposals, settings)
        score = CORRECTIONS.score(truth, [places_of(edits, threshold) for edits in proposals])
        rows.append(
            {
                "allowed": allowed,
                "threshold": threshold,
                "false_alarm_rate": score["false_alarm_rate"],
                "correction_f1": score["correction_f1"],
            }
        )
    return rows


def _applied(text: str, places: dict[int, str]) -> str:
    return "".join(places.get(place, one) for place, one in enumerate(text))


def _interval(table: Floats, name: str) -> dict[str, float]:
    found = bootstrap(partial(_drawn, table, name), len(table), samples=SAMPLES)
    return {"low": found.low, "high": found.high}


def _drawn(table: Floats, name: str, rows: Ints) -> float:
    return CORRECTIONS.figures(table[np.asarray(rows)], ())[name]


def write_corrections(
    path: Path, data: SentenceData, proposals: Sequence[Sequence[Edit]], corrector: Corrector
) -> None:
    """Wrong, corrected and right text of each row, with the edits, as JSON lines."""
    lines = []
    for line, row, edits in zip(data.lines, data.rows, proposals, strict=True):
        made = [edit for edit in edits if edit.score >= corrector.threshold]
        value = {
            "line": line,
            "wrong": row[0],
            "corrected": _applied(row[0], places_of(made, 0.0)),
            "right": row[1],
            "edits": [edit.to_json() for edit in made],
        }
        lines.append(json.dumps(value, ensure_ascii=False))
    write_staged(path, ("\n".join(lines) + "\n").encode("utf-8", "replace"))
