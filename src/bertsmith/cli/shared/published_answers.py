"""Published predictions for questions, scored by the official rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertsmith.errors import InputFileError
from bertsmith.files.not_text import check_regular
from bertsmith.files.streams import unreadable

if TYPE_CHECKING:
    from bertsmith.labeled.read.reader import OnError
    from bertsmith.labeled.spec import DataSpec

LARGEST = 500_000_000  # bytes
NAMED = 5


def score_answers(
    answers: Path, questions: Path, spec: DataSpec, *, on_error: OnError, quiet: bool
) -> dict[str, Any]:
    """Figures of {id: answer} on a file of questions; an answer that is missing counts 0."""
    from bertsmith.cli.shared.console import note
    from bertsmith.labeled.example import Answers
    from bertsmith.labeled.read.reader import read_examples
    from bertsmith.metrics import ANSWERS
    from bertsmith.metrics.answers import rules_for

    given_answers = _read(answers)
    given = spec if spec.task else spec.model_copy(update={"task": "answer"})
    rows = read_examples(questions, given, on_error=on_error)
    asked = [example for example in rows if isinstance(example.target, Answers)]
    if not asked:
        raise InputFileError(f"{questions}, line 1: no question has answers to compare with")
    targets = [e.target for e in asked if isinstance(e.target, Answers)]
    golds = [(*(text for text, _ in one.placed), *one.unplaced) for one in targets]
    ids = {example.id for example in asked}
    missing = [example.id for example in asked if example.id not in given_answers]
    unknown = [name for name in given_answers if name not in ids]
    for names, what in (
        (missing, "questions have no answer and count 0"),
        (unknown, "answers belong to no question of the file"),
    ):
        if names:
            some = ", ".join(names[:NAMED]) + (", ..." if len(names) > NAMED else "")
            note(f"{len(names):,} {what} ({some})", quiet=quiet)
    rules = rules_for(golds)
    figures = ANSWERS.score(golds, [given_answers.get(e.id) for e in asked], (rules,))
    return {
        "kind": "answers",
        "answers": str(answers),
        "file": str(questions),
        "task": "answer",
        "rules": rules,
        "rows": len(asked),
        "missing": len(missing),
        "unknown": len(unknown),
        "main": "f1",
        "figures": figures,
    }


def _read(path: Path) -> dict[str, str]:
    try:
        check_regular(path)
        if path.stat().st_size > LARGEST:
            raise InputFileError(f"{path} has more than {LARGEST:,} bytes; it holds no answers")
        content = json.loads(path.read_bytes())
    except OSError as fault:
        raise unreadable(path, fault) from fault
    except (ValueError, RecursionError) as fault:
        raise InputFileError(
            f'{path} is not JSON: {fault}; it should be {{"id": "answer", ...}}'
        ) from fault
    if not isinstance(content, dict):
        raise InputFileError(f'{path}: the document must be one object {{"id": "answer", ...}}')
    for name, value in content.items():
        if not isinstance(value, str):
            raise InputFileError(
                f"{path}, field {name!r}: it is {type(value).__name__}, not a text; write the "
                'answer, or "" for none'
            )
    return content
