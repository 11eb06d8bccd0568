"""Evaluation of models that write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bertsmith.api.observer import Observer
from bertsmith.errors import InputFileError
from bertsmith.files.atomic_folder import make_folder
from bertsmith.labeled.pairs.splits import (
    similar_rows,
    written_rows,
)
from bertsmith.labeled.read.reader import OnError
from bertsmith.labeled.spec import DataSpec
from bertsmith.training.kinds.write.kind import show_pairs
from bertsmith.training.kinds.write.record import WritingFolder, write_texts


def evaluate_writing(
    folder: WritingFolder,
    data: Path,
    spec: DataSpec,
    *,
    on_error: OnError = "stop",
    out: Path | None = None,
    observer: Observer | None = None,
) -> dict[str, Any]:
    """Figures of what a folder writes for the sources of a file, against its targets.

    `out` is a folder for written.jsonl.
    """
    observer = observer or Observer()
    read = similar_rows if folder.loaded.folder.sentence is not None else written_rows
    rows = read(data, spec, on_error)
    show_pairs(rows, observer)
    if not len(rows):
        raise InputFileError(f"{data}: there is no pair to compare with")
    with observer.predicting("evaluate", len(rows)) as progress:
        written = folder.written([row[0] for row in rows.rows])
        progress(len(rows))
    found = folder.evaluated(rows, written)
    record = {
        "model": str(folder.loaded.folder.path),
        "file": str(data),
        "task": folder.task,
        **found,
        "interval": found["intervals"][found["main"]],
        "truncation": {"rows_cut": found["sources_cut"]},
    }
    if out is not None:
        make_folder(out)
        write_texts(out / "written.jsonl", rows, written)
    return record
