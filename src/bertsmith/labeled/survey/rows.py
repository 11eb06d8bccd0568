"""Texts that are the same but for case, space and width, as one short key in memory."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from bertsmith.labeled.example import Example
from bertsmith.text.segment import CHINESE


@dataclass(frozen=True, slots=True)
class RowPlace:
    """A row by split, file and line; `id` where the file names its rows."""

    split: str
    source: str
    line: int
    id: str | None = None

    @classmethod
    def of(cls, split: str, example: Example) -> RowPlace:
        """The place of an example."""
        own = example.id if example.id != str(example.line) else None
        return cls(split, example.source, example.line, own)

    def __str__(self) -> str:
        named = "" if self.id is None else f", id {self.id}"
        return f"{PurePath(self.source).name}, line {self.line}{named}"

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        values: dict[str, Any] = {"split": self.split, "file": self.source, "line": self.line}
        return values if self.id is None else {**values, "id": self.id}


KEY_BYTES = 16
INVISIBLE = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]")  # soft hyphen, zero width
# Kana and East Asian signs, too: a space next to any of these is a matter of taste.
WIDE = "".join(f"{chr(low)}-{chr(high)}" for low, high in ((0x3001, 0x30FF), *CHINESE))
NEXT_TO_WIDE = re.compile(f"(?<=[{WIDE}]) | (?=[{WIDE}])")


def folded(text: str) -> str:
    """A text without differences of case, width (NFKC), white space and invisible signs."""
    if text.isascii():
        return " ".join(text.lower().split())
    # Folding may undo the normal form (and the other way round), so that comes twice.
    plain = unicodedata.normalize("NFKC", INVISIBLE.sub("", text)).casefold()
    plain = " ".join(unicodedata.normalize("NFKC", plain).split())
    return NEXT_TO_WIDE.sub("", plain)


def text_key(texts: Sequence[str]) -> bytes:
    """Equal for rows whose texts are the same when folded; one field never runs into the next."""
    digest = hashlib.blake2b(digest_size=KEY_BYTES)
    for text in texts:
        piece = folded(text).encode("utf-8", "surrogatepass")
        digest.update(len(piece).to_bytes(8, "little"))
        digest.update(piece)
    return digest.digest()
