"""The words of a text as one memory-mapped array of ids, with lines, documents and counts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertsmith.classic.stream.splitting import RESERVED, UNKNOWN, SplitRule
from bertsmith.errors import ConfigError, FolderError
from bertsmith.files.folder_hashes import check_hashes
from bertsmith.files.safe_folder import Folder

MANIFEST = "words.json"
IDS, LINES, DOCUMENTS, COUNTS, WORDS = (
    "ids.bin",
    "lines.bin",
    "documents.bin",
    "counts.bin",
    "words.txt",
)
KINDS = {IDS: "<i4", LINES: "<i8", DOCUMENTS: "<i8", COUNTS: "<i8"}
FORMAT, VERSION = "bertsmith words", 1
LARGEST_WORDS = 1 << 32  # bytes of words.txt

Ids = NDArray[np.int32]


@dataclass(frozen=True, kw_only=True, eq=False)
class WordStream:
    """The words of all lines, one after another.

    `ids` (N,); `starts` (lines + 1,) where each line begins; `documents` (documents + 1,) the first
    line of each document; `words` by falling count, ties by code point, number 0 is "<unk>": the
    words that were left out, and a literal "<s>", "</s>" or "<unk>" of the text; `counts` (V,).
    """

    ids: Ids
    starts: NDArray[np.int64]
    documents: NDArray[np.int64]
    words: tuple[str, ...]
    counts: NDArray[np.int64]
    rule: SplitRule = field(default_factory=SplitRule)
    account: dict[str, Any] = field(default_factory=dict)
    folder: Path | None = None

    @classmethod
    def open(cls, folder: Path) -> WordStream:
        """The stream that `build_words` wrote; sizes and borders are checked."""
        place = Folder.at(Path(folder), wanted="a folder of words that `build_words` wrote")
        if not place.has(MANIFEST):
            raise FolderError(f"{folder} has no {MANIFEST}, so it is no folder of words")
        check_hashes(place)
        manifest = place.json_object(MANIFEST)
        if (manifest.get("format"), manifest.get("version")) != (FORMAT, VERSION):
            raise FolderError(f"{place.path / MANIFEST} is not of format {FORMAT!r} {VERSION}")
        sizes = manifest.get("files")
        if not isinstance(sizes, dict) or not isinstance(manifest.get("account"), dict):
            raise FolderError(f"{place.path / MANIFEST} is damaged; build the words again")
        arrays = {name: _array(place, name, kind, sizes) for name, kind in KINDS.items()}
        words = read_words(place)
        _check_borders(place.path / LINES, arrays[LINES], len(arrays[IDS]))
        _check_borders(place.path / DOCUMENTS, arrays[DOCUMENTS], len(arrays[LINES]) - 1)
        if len(arrays[COUNTS]) != len(words):
            raise FolderError(f"{place.path / COUNTS} does not fit {WORDS}; build the words again")
        return cls(
            ids=arrays[IDS],
            starts=arrays[LINES],
            documents=arrays[DOCUMENTS],
            words=words,
            counts=arrays[COUNTS],
            rule=SplitRule.open(place.path),
            account=manifest["account"],
            folder=place.path,
        )

    @property
    def lines(self) -> int:
        """How many lines there are."""
        return len(self.starts) - 1

    @property
    def vocab_size(self) -> int:
        """How many words there are, the unknown one included."""
        return len(self.words)

    def line(self, number: int) -> Ids:
        """The ids of one line, counted from 0."""
        return self.ids[self.starts[number] : self.starts[number + 1]]

    def encode(self, words: Sequence[str]) -> Ids:
        """The ids of words; what the stream does not know is 0."""
        get = self._numbers.get
        return np.fromiter((get(word, 0) for word in words), dtype=np.int32, count=len(words))

    def part(self, first: int, last: int) -> WordStream:
        """The documents from `first` to before `last`, with the words and counts of that part."""
        if not 0 <= first < last <= len(self.documents) - 1:
            raise ConfigError(
                f"documents {first} to {last} are no part of {len(self.documents) - 1:,} documents"
            )
        line, end = int(self.documents[first]), int(self.documents[last])
        begin = int(self.starts[line])
        ids = self.ids[begin : self.starts[end]]
        return replace(
            self,
            ids=ids,
            starts=self.starts[line : end + 1] - begin,
            documents=self.documents[first : last + 1] - line,
            counts=np.bincount(ids, minlength=self.vocab_size).astype(np.int64),
        )

    def account_lines(self) -> list[str]:
        """How much there is, and everything that was left out or changed."""
        known = self.account
        total = max(1, len(self.ids))
        lines = [
            f"{len(self.ids):,} words in {self.lines:,} lines and "
            f"{len(self.documents) - 1:,} documents; {self.vocab_size - 1:,} different ones"
        ]
        if known.get("distinct_left_out"):
            count = known["words_left_out"] - sum(known["reserved"].values())
            reason = f"rarer than {known['min_count']}"
            if known["most"] is not None:
                reason += f" or beyond the {known['most']:,} most frequent"
            lines.append(
                f"{known['distinct_left_out']:,} words {reason} became <unk>: {count:,} of the "
                f"text ({count / total:.2%}), most often {', '.join(known['left_out'])}"
            )
        for word, count in known.get("reserved", {}).items():
            lines.append(f"{word} stands {count:,} times in the text: it is an unknown word there")
        for key, what in (
            ("lines_without_words", "lines without a word were left out"),
            ("skipped_lines", "unreadable lines were skipped"),
            ("surrogates", "characters that are no Unicode text were replaced"),
        ):
            if known.get(key):
                lines.append(f"{known[key]:,} {what}")
        return lines + [f"  {example}" for example in known.get("examples", [])]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return word_numbers(self.words)


def word_numbers(words: Sequence[str]) -> dict[str, int]:
    """The id of each word; reserved names of the text itself stay unknown."""
    numbers = {word: number for number, word in enumerate(words)}
    for name in RESERVED:
        numbers.pop(name, None)
    return numbers


def read_words(folder: Folder, name: str = WORDS) -> tuple[str, ...]:
    """The words of a folder, one per line; the first is the unknown one."""
    where = folder.path / name
    try:
        text = folder.read(name, limit=LARGEST_WORDS).decode()
    except UnicodeDecodeError as fault:
        raise FolderError(f"{where} is not UTF-8 (byte {fault.start:,}); copy it anew") from fault
    words = tuple(text.removesuffix("\n").split("\n"))
    if words[0] != UNKNOWN or "" in words or len(set(words)) != len(words):
        raise FolderError(f"{where}: the first word is not {UNKNOWN}, or one is empty or twice")
    return words


def _array(folder: Folder, name: str, kind: str, sizes: dict[str, Any]) -> NDArray[Any]:
    with folder.open(name) as file:
        size = os.fstat(file.fileno()).st_size
        if size != sizes.get(name) or size == 0 or size % np.dtype(kind).itemsize:
            raise FolderError(
                f"{folder.path / name} has {size:,} bytes, {MANIFEST} says {sizes.get(name)}: it "
                "is damaged; build the words again"
            )
        return np.memmap(file, dtype=kind, mode="r")


def _check_borders(path: Path, borders: NDArray[np.int64], last: int) -> None:
    if len(borders) < 2 or borders[0] != 0 or borders[-1] != last:
        raise FolderError(f"{path} does not fit the other files; build the words again")
