"""The JSON that commands write and print, without what no two runs have in common, as a hash."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

# Keys whose values hang on the clock, the machine, the release or the place.
DROPPED_KEYS = frozenset(
    {
        # clock
        "seconds",
        "time",
        "times",
        "date",
        "started",
        "ended",
        "created",
        "duration",
        "tokens_per_second",
        "texts_per_second",
        "rows_per_second",
        "speed",
        # machine
        "cpu",
        "host",
        "machine",
        "threads",
        # release
        "bertsmith",
        "bertsmith_version",
        "__version__",
        "version",
        "made_by",
        "torch",
        "commit",
        "versions",
        # place
        "path",
        "made_from",  # hangs on the times of files
    }
)
# Rows of a log that are written by the clock.
DROPPED_ROWS = {"kind": frozenset({"train"})}
# Files of a run that belong to it alone, or that are written once more as part of another.
DROPPED_FILES = frozenset({"checkpoints", "lock", "hashes.json"})
# Digests over what is left out.
DROPPED_PLACES = frozenset({"index.json:sha256"})
# Places of values in records of a kind (as proof.json names it), by their beginning: now, and at
# the commit of the hashes; the first that fits counts.
RENAMED: dict[str, dict[str, str]] = {
    "sentences": {
        "proof.json:data.files.train": "sentences.json:data.file",
        "proof.json:data.rows.train": "sentences.json:data.rows",
        "proof.json:data.notes": "sentences.json:notes",
        "proof.json:training.best_step": "sentences.json:best_step",
        "proof.json:training.steps": "sentences.json:steps",
        "proof.json:": "sentences.json:",
    },
}
# Places of values that records of a kind (as proof.json names it) did not have at that commit.
ADDED: dict[str, frozenset[str]] = {
    "labeled": frozenset({"kind"}),
    "write": frozenset({"kind", "training.best_weights", "data.files.test"}),
    "sentences": frozenset(
        {
            "kind",
            "task",
            "curves",
            "training.best_weights",
            "training.precision",
            "training.rate",
            "training.seed",
            "training.tokens",
            "data.files.dev",
            "data.files.test",
            "data.rows.dev",
            "data.rows.test",
        }
    ),
    "spelling": frozenset({"kind", "training.best_weights", "data.files.test"}),
    "predict": frozenset({"kind"}),
    "correct": frozenset({"kind"}),
}


def record_files(folder: Path) -> list[Path]:
    """All JSON of a folder, sorted by name, without that of checkpoints."""
    return [
        path
        for path in sorted(folder.rglob("*"))
        if path.suffix in (".json", ".jsonl")
        and not DROPPED_FILES.intersection(path.relative_to(folder).parts)
    ]


def record_lines(folder: Path, work: Path) -> list[str]:
    """A line for each value in the JSON of a folder, `file:key.key = value`, sorted."""
    found: list[str] = []
    for path in record_files(folder):
        name = path.relative_to(folder).as_posix()
        found += canonical(path.read_text(encoding="utf-8"), name, work)
    return sorted(found)


def record_hash(folder: Path, work: Path) -> str:
    """sha256 of the canonical lines of all records in a folder."""
    return hashlib.sha256("\n".join(record_lines(folder, work)).encode()).hexdigest()


def canonical(text: str, name: str, work: Path) -> list[str]:
    """The lines of one record: of JSON, of JSON in lines, or the text itself.

    The path of the work folder becomes a dot, and separators those of POSIX.
    """
    text = text.replace(str(work), ".")
    try:
        values = [json.loads(text)]
    except json.JSONDecodeError:
        try:
            values = [json.loads(line) for line in text.splitlines() if line.strip()]
            values = [{f"{number:06d}": row} for number, row in enumerate(_kept_rows(values))]
        except json.JSONDecodeError:
            values = [{"text": text}]
    lines: list[str] = []
    for value in values:
        renamed = RENAMED.get(_kind(value), {})
        leaves = _leaves(_without_added(value), f"{name}:")
        kept = (line for line in leaves if line.split(" = ")[0] not in DROPPED_PLACES)
        lines += [_as_before(line, renamed) for line in kept]
    return sorted(lines)


def _kind(record: Any) -> str:
    return str(record.get("kind")) if isinstance(record, dict) else ""


def _without_added(record: Any) -> Any:
    """A record without what its kind has had since the commit of the hashes."""
    for place in ADDED.get(_kind(record), ()):
        record = _without(record, place.split("."))
    return record


def _without(record: Any, keys: list[str]) -> Any:
    first, *rest = keys
    if not isinstance(record, dict) or first not in record:
        return record
    if not rest:
        return {key: value for key, value in record.items() if key != first}
    return record | {first: _without(record[first], rest)}


def _kept_rows(rows: list[Any]) -> list[Any]:
    return [
        row
        for row in rows
        if not isinstance(row, dict)
        or not any(row.get(key) in values for key, values in DROPPED_ROWS.items())
    ]


def _leaves(value: Any, place: str) -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            if key not in DROPPED_KEYS and not _is_digest(key, inner):
                yield from _leaves(inner, f"{place}{key}.")
    elif isinstance(value, list) and value:
        for number, inner in enumerate(value):
            yield from _leaves(inner, f"{place}{number}.")
    else:
        yield f"{place.removesuffix('.')} = {json.dumps(value, ensure_ascii=False)}"


def _is_digest(key: str, value: Any) -> bool:
    """Whether a value is the key of a run: a digest of all that decides it, with its paths."""
    return key == "key" and re.fullmatch("[0-9a-f]{64}", str(value)) is not None


def _as_before(line: str, renamed: Mapping[str, str]) -> str:
    """The line as it was when the hashes were made."""
    for now, before in renamed.items():
        if line.startswith(now):
            return before + line.removeprefix(now)
    return line
