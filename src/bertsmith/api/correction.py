"""Correction of texts, and evaluation of a corrector."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bertsmith.api.observer import Observer
from bertsmith.errors import InputFileError
from bertsmith.files.atomic_folder import make_folder
from bertsmith.labeled.errors.rows import correction_rows
from bertsmith.labeled.read.reader import OnError
from bertsmith.labeled.spec import DataSpec
from bertsmith.runtime.corrector import Corrector
from bertsmith.tasks.spelling.edits import CorrectedText
from bertsmith.training.kinds.spelling.record import (
    evaluated,
    write_corrections,
)


def evaluate_corrector(
    folder: str | Path,
    data: Path,
    spec: DataSpec,
    *,
    on_error: OnError = "stop",
    out: Path | None = None,
    device: str = "cpu",
    observer: Observer | None = None,
) -> dict[str, Any]:
    """Figures of a corrector on the wrong and right texts of a file.

    `out` is a folder for corrected.jsonl.
    """
    corrector = Corrector.load(folder, device=device)
    rows = correction_rows(data, spec, on_error)
    for remark in rows.notes:
        (observer or Observer()).note(remark)
    if not len(rows):
        raise InputFileError(f"{data}: there is no pair to compare with")
    proposals = corrector.proposals([row[0] for row in rows.rows])
    found = evaluated(rows, proposals, corrector.threshold)
    record = {"model": str(folder), "file": str(data), "task": "correct", **found}
    record["notes"] = list(rows.notes)
    record["interval"] = found["intervals"][found["main"]]
    if out is not None:
        make_folder(out)
        write_corrections(out / "corrected.jsonl", rows, proposals, corrector)
    return record


def correct(
    model: str | Path | Corrector,
    texts: Iterable[str],
    *,
    threshold: float | None = None,
    device: str = "cpu",
) -> list[CorrectedText]:
    """Each text with the edits of a corrector that `finetune --task correct` has trained.

    A folder is loaded at every call; a `Corrector` stays in memory.
    """
    corrector = model if isinstance(model, Corrector) else Corrector.load(model, device=device)
    return corrector.correct(texts, threshold=threshold)
