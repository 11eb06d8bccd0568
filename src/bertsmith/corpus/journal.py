"""The array files of a corpus while it is built, and what was counted so far."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertsmith.corpus.reading import MOST_EXAMPLES
from bertsmith.corpus.worker import EncodedBlock
from bertsmith.files.resumable_file import GrowingFiles
from bertsmith.text.letter_case import LOWER, UPPER

ARRAYS = ("tokens.bin", "words.bin", "sentences.bin", "documents.bin")
MOST_UNKNOWN = 50_000  # distinct unknown words that are counted; rarer ones make room
STARTS = dict.fromkeys(ARRAYS, b"") | {"sentences.bin": np.zeros(1, dtype="<i8").tobytes()}


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
    words: int = 0
    cased_words: int = 0  # that have upper and lower case
    capitals: int = 0  # words that begin with a capital


class GrowingCorpus:
    """The array files of a corpus in the making, appended block by block."""

    def __init__(self, files: GrowingFiles) -> None:
        """Resume from what an earlier build left in the files, or begin anew."""
        self._files = files
        self.close = self._files.close
        try:
            state = self._files.state
            self.tally = CorpusTally(**state.get("tally", {}))
            self.mark: str = state.get("mark", "")
        except TypeError:  # of another version
            self.restart()

    def restart(self) -> None:
        """Discard everything that was written."""
        self._files.restart()
        self.tally, self.mark = CorpusTally(), ""

    def append(self, block: EncodedBlock, text_bytes: int) -> None:
        """Put the arrays of the next block behind those that are there."""
        tally = self.tally
        ends = np.cumsum(np.frombuffer(block.lengths, dtype="<i8")) + tally.tokens
        starts = np.unique(np.frombuffer(block.starts, dtype="<i8")) + tally.sentences
        starts = starts[starts > tally.last_start]  # a document without sentences has no place
        self._files.append("tokens.bin", block.tokens)
        self._files.append("words.bin", block.words)
        self._files.append("sentences.bin", ends.astype("<i8").tobytes())
        self._files.append("documents.bin", starts.astype("<i8").tobytes())
        tally.blocks += 1
        tally.tokens += len(block.words)
        self._count_words(np.frombuffer(block.words, dtype=np.uint8))
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

    @property
    def due(self) -> bool:
        """Whether it is time to save."""
        return self._files.due

    def save(self, mark: str) -> None:
        """Bring everything to the disk and note in the journal that it is good.

        `mark` stands for the text that was encoded so far; the next start compares it.
        """
        self.mark = mark
        if self.tally.tokens:  # else there is nothing worth resuming from
            self._files.save({"mark": mark, "tally": asdict(self.tally)})

    def finish(self) -> dict[str, dict[str, Any]]:
        """Close the arrays with their last borders; sizes and hashes of the files."""
        tally = self.tally
        if tally.last_start == tally.sentences:  # that document has no sentences: its start
            tally.documents -= 1  # is the border at the end already
        else:
            self._files.append("documents.bin", np.array([tally.sentences], dtype="<i8").tobytes())
        return self._files.finish()

    def _count_words(self, codes: NDArray[np.uint8]) -> None:
        counts = np.bincount(codes, minlength=1 + 2 * UPPER + 1)
        lower, upper = int(counts[1 + 2 * LOWER]), int(counts[1 + 2 * UPPER])
        self.tally.words += int(counts[1:].sum())
        self.tally.cased_words += lower + upper
        self.tally.capitals += upper

    def _count_unknown(self, words: Counter[str]) -> None:
        known = self.tally.unknown
        for word, count in words.items():
            known[word] = known.get(word, 0) + count
        if len(known) > MOST_UNKNOWN:
            ordered = sorted(known.items(), key=lambda item: (-item[1], item[0]))
            self.tally.unknown = dict(ordered[: MOST_UNKNOWN // 2])
