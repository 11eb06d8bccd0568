"""Other text in the words of a stream or a model: for scoring, and for held-out parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertsmith.classic.stream.folder import WordStream, word_numbers
from bertsmith.classic.stream.splitting import SplitRule, WordSplitter
from bertsmith.corpus.reading import documents_of, read_blocks
from bertsmith.corpus.sources import CorpusSettings, find_sources
from bertsmith.errors import InputFileError

Ids = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class EncodedText:
    """Lines as ids of known words, 0 for unknown ones; lines without a word are left out.

    `documents` are the numbers of the lines that begin one, and the number of all lines;
    `characters` are those of all lines, spaces included.
    """

    lines: list[Ids]
    documents: list[int]
    characters: int
    empty: int


def encode_files(
    files: Iterable[Path],
    words: Sequence[str],
    rule: SplitRule,
    settings: CorpusSettings = CorpusSettings(),  # noqa: B008 - frozen
) -> EncodedText:
    """The lines of files, split as `rule` says, as ids of `words`."""
    encoder = KnownWordEncoder(words, rule)
    lines: list[Ids] = []
    documents: list[int] = []
    characters = empty = 0
    sources = find_sources(files, settings)
    for source in sources:
        for block in read_blocks(source):
            found = documents_of(block, settings.on_error)
            characters += sum(map(len, found.sentences))
            starts = set(found.starts)
            for number, line in enumerate(encoder.encode(found.sentences)):
                if number in starts and documents[-1:] != [len(lines)]:
                    documents.append(len(lines))
                if len(line):
                    lines.append(line)
                else:
                    empty += 1
    if not lines:
        names = ", ".join(source.path.name for source in sources[:5])
        raise InputFileError(f"there is no word in {names}; give files with text")
    if documents[-1:] != [len(lines)]:
        documents.append(len(lines))
    return EncodedText(lines, documents, characters, empty)


def stream_of(text: EncodedText, words: tuple[str, ...], rule: SplitRule) -> WordStream:
    """Encoded text as a stream in memory, for models that take one as held-out text."""
    ids = np.concatenate(text.lines).astype(np.int32)
    lengths = [len(line) for line in text.lines]
    return WordStream(
        ids=ids,
        starts=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        documents=np.array([0, *text.documents[1:]], dtype=np.int64),
        words=words,
        counts=np.bincount(ids, minlength=len(words)).astype(np.int64),
        rule=rule,
    )


class KnownWordEncoder:
    """Texts as ids of known words."""

    def __init__(self, words: Sequence[str], rule: SplitRule) -> None:
        self._known = word_numbers(words)
        self._splitter = WordSplitter(rule)
        self._ids = np.zeros(1, dtype=np.int32)  # by number of the splitter

    def encode(self, lines: Sequence[str]) -> list[Ids]:
        """One array per line."""
        split = self._splitter.split(lines)
        new = [self._known.get(word, 0) for word in split.new]
        self._ids = np.concatenate([self._ids, np.array(new, dtype=np.int32)])
        ids = self._ids[split.numbers]
        return list(np.split(ids, np.cumsum(split.lengths)[:-1])) if len(split.lengths) else []
