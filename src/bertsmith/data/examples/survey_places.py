"""Where a row of a survey stands, in few bytes and in words."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from bertsmith.data.examples.example import Example


@dataclass(frozen=True, slots=True)
class Place:
    """A row by split, file and line; `id` where the file names its rows."""

    split: str
    source: str
    line: int
    id: str | None = None

    @classmethod
    def of(cls, split: str, example: Example) -> Place:
        """The place of an example."""
        own = example.id if example.id != str(example.line) else None
        return cls(split, example.source, example.line, own)

    def __str__(self) -> str:
        named = "" if self.id is None else f", id {self.id}"
        return f"{PurePath(self.source).name}, line {self.line}{named}"

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        found: dict[str, Any] = {"split": self.split, "file": self.source, "line": self.line}
        return found if self.id is None else {**found, "id": self.id}
