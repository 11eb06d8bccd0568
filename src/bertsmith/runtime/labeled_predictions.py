"""Labeled rows with what a model said of them, one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from bertsmith.files.atomic_file import StagedFile
from bertsmith.labeled.example import Example
from bertsmith.labeled.read.source_rows import LINE_BREAKS
from bertsmith.labeled.read.write import target_value
from bertsmith.tasks.prediction import Prediction

SHOWN_OTHERS = 5


def write_judged(path: Path, examples: Iterable[Example], said: Iterable[Prediction]) -> None:
    """Write file, line, id, texts, truth and answer of each row; the file whole or not at all."""
    with StagedFile(path) as file:
        for example, one in zip(examples, said, strict=True):
            told = one.to_json()
            if one.others:
                told["others"] = told["others"][:SHOWN_OTHERS]
                told.pop("probabilities", None)
            row = {
                "file": Path(example.source).name,
                "line": example.line,
                "id": example.id,
                "texts": list(example.texts),
            }
            if example.target is not None:
                row["truth"] = target_value(example.target, example.texts[0])
            line = json.dumps({**row, **told}, ensure_ascii=False).translate(LINE_BREAKS)
            file.write(line.encode("utf-8", "replace") + b"\n")
