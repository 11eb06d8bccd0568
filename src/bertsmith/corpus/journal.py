"""Array files that grow, and a journal of how far they are good: a killed build resumes from it.

Bytes are appended first and synced, then the journal that counts them is put in place as a whole.
Whatever a killed process left behind the journaled ends is cut off before work resumes.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from bertsmith.corpus.reading import MOST_EXAMPLES
from bertsmith.corpus.worker import EncodedBlock
from bertsmith.errors import WriteError
from bertsmith.files.atomic_file import write_staged
from bertsmith.files.digest import prefix_hash

ARRAYS = ("tokens.bin", "words.bin", "sentences.bin", "documents.bin")
JOURNAL = "journal.json"
MOST_UNKNOWN = 50_000  # distinct unknown words that are counted; rarer ones make room
ZERO = np.zeros(1, dtype="<i8").tobytes()


@dataclass(slots=True, kw_only=True)
class CorpusTally:
    """What was counted so far."""

    blocks: int = 0
    tokens: int = 0
    sentences: int = 0
    documents: int = 0
    last_start: int = -1
    text_bytes: int = 0
    characters: int = 0
    empty_sentences: int = 0
    skipped_lines: int = 0
    surrogates: int = 0
    examples: list[str] = field(default_factory=list)
    unknown: dict[str, int] = field(default_factory=dict)


class GrowingCorpus:
    """The array files of a corpus in the making, appended block by block."""

    def __init__(self, folder: Path, journal: Path, key: str) -> None:
        """Take up what an earlier build of the same `key` left, or begin anew."""
        self.folder = folder
        self._journal = journal
        self._key = key
        self._files: dict[str, Any] = {}
        self._forget()
        if not self._take_up():
            self.restart()

    def restart(self) -> None:
        """Forget everything that was written."""
        self.close()
        self._journal.unlink(missing_ok=True)
        self._forget()
        try:
            self._files = {name: (self.folder / name).open("wb") for name in ARRAYS}
        except OSError as error:
            self._fail(error)
        self._append("sentences.bin", ZERO)

    def _forget(self) -> None:
        self.tally = CorpusTally()
        self.mark = ""
        self._hashes = {name: hashlib.sha256() for name in ARRAYS}
        self._sizes = dict.fromkeys(ARRAYS, 0)

    def append(self, block: EncodedBlock, text_bytes: int) -> None:
        """Put the arrays of the next block behind those that are there."""
        tally = self.tally
        ends = np.cumsum(np.frombuffer(block.lengths, dtype="<i8")) + tally.tokens
        starts = np.unique(np.frombuffer(block.starts, dtype="<i8")) + tally.sentences
        starts = starts[starts > tally.last_start]  # a document without sentences has no place
        self._append("tokens.bin", block.tokens)
        self._append("words.bin", block.words)
        self._append("sentences.bin", ends.astype("<i8").tobytes())
        self._append("documents.bin", starts.astype("<i8").tobytes())
        tally.blocks += 1
        tally.tokens += len(block.words)
        tally.sentences += len(ends)
        tally.documents += len(starts)
        tally.last_start = int(starts[-1]) if len(starts) else tally.last_start
        tally.text_bytes += text_bytes
        tally.characters += block.characters
        tally.empty_sentences += block.empty
        tally.skipped_lines += block.skipped
        tally.surrogates += block.surrogates
        room = max(0, MOST_EXAMPLES - len(tally.examples))
        tally.examples += block.examples[:room]
        self._count_unknown(block.unknown)

    def save(self, mark: str) -> None:
        """Bring everything to the disk and note in the journal that it is good.

        `mark` stands for the text that was encoded so far; the next start compares it.
        """
        self.mark = mark
        self._sync()
        if self.tally.tokens == 0:  # nothing worth resuming from
            return
        state = {
            "key": self._key,
            "mark": mark,
            "tally": asdict(self.tally),
            "sizes": self._sizes,
            "sha256": {name: self._hashes[name].hexdigest() for name in ARRAYS},
        }
        write_staged(self._journal, json.dumps(state, ensure_ascii=False).encode())

    def finish(self) -> dict[str, dict[str, Any]]:
        """Close the arrays with their last borders; sizes and hashes of the files."""
        tally = self.tally
        if tally.last_start == tally.sentences:  # that document has no sentences: its start
            tally.documents -= 1  # is the border at the end already
        else:
            self._append("documents.bin", np.array([tally.sentences], dtype="<i8").tobytes())
        self._sync()
        self.close()
        return {
            name: {"size": self._sizes[name], "sha256": self._hashes[name].hexdigest()}
            for name in ARRAYS
        }

    def _sync(self) -> None:
        try:
            for file in self._files.values():
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            self._fail(error)

    def close(self) -> None:
        """Let go of the files."""
        for file in self._files.values():
            file.close()
        self._files = {}

    def _append(self, name: str, data: bytes) -> None:
        try:
            self._files[name].write(data)
        except OSError as error:
            self._fail(error)
        self._sizes[name] += len(data)
        self._hashes[name].update(data)

    def _count_unknown(self, words: Counter[str]) -> None:
        known = self.tally.unknown
        for word, count in words.items():
            known[word] = known.get(word, 0) + count
        if len(known) > MOST_UNKNOWN:
            ordered = sorted(known.items(), key=lambda item: (-item[1], item[0]))
            self.tally.unknown = dict(ordered[: MOST_UNKNOWN // 2])

    def _take_up(self) -> bool:
        """Read the journal of a build that was cut short; False if there is nothing to resume."""
        try:
            state = json.loads(self._journal.read_text(encoding="utf-8"))
            if state["key"] != self._key:
                return False
            tally = CorpusTally(**state["tally"])
            sizes = {name: int(state["sizes"][name]) for name in ARRAYS}
            mark = str(state["mark"])
            for name in ARRAYS:
                digest = prefix_hash(self.folder / name, sizes[name])
                if digest is None or digest.hexdigest() != state["sha256"][name]:
                    return False
                self._hashes[name] = digest
            for name in ARRAYS:
                os.truncate(self.folder / name, sizes[name])
                self._files[name] = (self.folder / name).open("r+b")
                self._files[name].seek(sizes[name])
        except (OSError, ValueError, KeyError, TypeError):
            return False
        self.tally, self._sizes, self.mark = tally, sizes, mark
        return True

    def _fail(self, error: OSError) -> NoReturn:
        free = shutil.disk_usage(self.folder).free
        written = sum(self._sizes.values())
        raise WriteError(
            f"cannot write {self.folder}: {error.strerror or error}; {written:,} bytes are written "
            f"and more are needed, {free:,} are free; make room and run the same command again: "
            "it resumes from what is safe"
        ) from error
