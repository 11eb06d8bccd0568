"""From files of text to a stream of words on disk: in bounded memory, safe to kill anywhere.

Words are numbered as they come and written to files that grow with a journal; when all is read they
are numbered anew by falling count, and the folder appears by one rename.
"""

from __future__ import annotations

import logging
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertsmith.classic.stream.folder import (
    COUNTS,
    DOCUMENTS,
    FORMAT,
    IDS,
    LINES,
    MANIFEST,
    VERSION,
    WORDS,
    WordStream,
)
from bertsmith.classic.stream.splitting import RESERVED, UNKNOWN, SplitRule, WordSplitter
from bertsmith.corpus.reading import BLOCK, MOST_EXAMPLES, CorpusReader, Documents, documents_of
from bertsmith.corpus.shards import vocabulary_of
from bertsmith.corpus.sources import (
    CorpusSettings,
    CorpusSource,
    choose_segmenter,
    describe_sources,
    find_sources,
)
from bertsmith.errors import ConfigError, InputFileError, TargetExistsError
from bertsmith.files.atomic_file import sync
from bertsmith.files.digest import json_digest
from bertsmith.files.folder_hashes import write_hashes
from bertsmith.files.growing_folder import GrowingFolder
from bertsmith.files.resumable_file import GrowingFiles
from bertsmith.files.strict_json import write_json
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.text.whole_words.rule import Split

__all__ = ["WordReading", "WordStream", "build_words"]

log = logging.getLogger(__name__)

NEW = "new.txt"  # words in the order of their first occurrence
EXAMPLES_LEFT_OUT = 10
_STEP = 1 << 22
_STARTS = {
    IDS: b"",
    LINES: np.zeros(1, dtype="<i8").tobytes(),
    DOCUMENTS: b"",
    NEW: b"",
}
Progress = Callable[[int, float], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class WordReading(CorpusSettings):
    """How files are read (see `CorpusSettings`) and split into words (see `SplitRule`)."""

    split: Split = "words"
    block_bytes: int = BLOCK


@dataclass(slots=True, kw_only=True)
class WordTally:
    """What was counted so far."""

    blocks: int = 0
    words: int = 0
    lines: int = 0
    documents: int = 0
    last_start: int = -1
    characters: int = 0
    lines_without_words: int = 0
    skipped_lines: int = 0
    surrogates: int = 0
    examples: list[str] = field(default_factory=list)


def build_words(
    files: Iterable[Path],
    out: Path,
    *,
    min_count: int = 1,
    most: int | None = None,
    lower: bool = False,
    tokenizer: Tokenizer | None = None,
    reading: WordReading = WordReading(),  # noqa: B008 - frozen
    progress: Progress = lambda words, share: None,
) -> WordStream:
    """Write the folder `out`, or resume where the same call was interrupted, and open it.

    Words rarer than `min_count`, or beyond the `most` most frequent ones, become "<unk>". With a
    `tokenizer` its pieces are the words. `progress` hears words and the share of the input. A
    folder that was made from the same files and settings is opened as it is.
    """
    folder = GrowingFolder(out, manifest=MANIFEST, holds="folder of words", instead="folder")
    plan = _plan(files, min_count, most, lower, tokenizer, reading)
    with folder:
        build = _Building(plan, folder)
        if folder.finished:
            return build.existing()
        build.run(progress)
    return WordStream.open(folder.target)


def words_key(
    files: Iterable[Path],
    *,
    min_count: int = 1,
    most: int | None = None,
    lower: bool = False,
    tokenizer: Tokenizer | None = None,
    reading: WordReading = WordReading(),  # noqa: B008 - frozen
) -> str:
    """What `account` of the stream that `build_words` would make has as "made_from"."""
    return _plan(files, min_count, most, lower, tokenizer, reading).key()


def _plan(
    files: Iterable[Path],
    min_count: int,
    most: int | None,
    lower: bool,
    tokenizer: Tokenizer | None,
    reading: WordReading,
) -> _Plan:
    if min_count < 1 or (most is not None and most < 1):
        raise ConfigError(f"min_count is {min_count} and most is {most}; both must be at least 1")
    sources = find_sources(files, reading)
    for line in describe_sources(sources):
        log.info("%s", line)
    named = "character"
    if tokenizer is None and reading.split != "spaces":
        named = choose_segmenter(reading.segmenter, sources, log.info)
    rule = SplitRule(split=reading.split, lower=lower, segmenter=named, tokenizer=tokenizer)
    return _Plan(sources, rule, reading, min_count, most)


@dataclass(frozen=True, slots=True)
class _Plan:
    """Settled sources, and what becomes a word."""

    sources: list[CorpusSource]
    rule: SplitRule
    reading: WordReading
    min_count: int
    most: int | None

    def key(self) -> str:
        """What must not change for a build to resume; files by path, size and time."""
        files = [
            [str(s.path.absolute()), s.size, s.path.stat().st_mtime_ns, s.form, s.encoding]
            for s in self.sources
        ]
        spec = self.reading.reading.model_dump(mode="json")
        tokenizer = self.rule.tokenizer
        pieces = None if tokenizer is None else vocabulary_of(tokenizer)
        rest = [self.reading.on_error, self.reading.block_bytes, self.min_count, self.most]
        return json_digest([files, spec, self.rule.describe(), pieces, rest])


@dataclass(frozen=True, slots=True)
class _Building:
    """One build, from settled sources to the renamed folder."""

    plan: _Plan
    target: GrowingFolder

    def existing(self) -> WordStream:
        """The stream that stands there already, if it was made from the same."""
        out = self.target.target
        stream = WordStream.open(out)
        if stream.account.get("made_from") != self.plan.key():
            raise TargetExistsError(
                f"{out} exists and was made from other files or settings; "
                "give another name or remove it first"
            )
        return stream

    def run(self, progress: Progress) -> None:
        """Split everything that is not yet written, then put the folder in place."""
        work = self.target.path
        grown = self.target.grow(self.plan.key(), _STARTS)
        tally = WordTally(**grown.state) if grown.state else WordTally()
        known = _read_new(work / NEW) if tally.words else []
        splitter = WordSplitter(self.plan.rule, known)
        reading = self.plan.reading
        blocks = CorpusReader(self.plan.sources, reading.block_bytes, reading.on_error)
        try:
            for number, one in enumerate(blocks):
                if number < tally.blocks:
                    continue
                documents = documents_of(one.block, self.plan.reading.on_error)
                _append(grown, tally, documents, splitter)
                progress(tally.words, one.share)
                if grown.due:
                    grown.save(asdict(tally))
        except InputFileError:  # between two blocks; others may come inside one
            if tally.words:
                grown.save(asdict(tally))
            raise
        finally:
            grown.sync()
        if tally.words == 0:
            grown.close()
            names = ", ".join(source.path.name for source in self.plan.sources[:5])
            raise InputFileError(f"there is no word in {names}; give files with text")
        if tally.last_start != tally.lines:
            grown.append(DOCUMENTS, np.array([tally.lines], dtype="<i8").tobytes())
        grown.finish()
        self._finish(tally, _read_new(work / NEW))

    def _finish(self, tally: WordTally, names: list[str]) -> None:
        """Number the words by falling count, write the folder and rename it."""
        work = self.target.path
        folder = work / "words"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        found = np.memmap(work / IDS, dtype="<i4", mode="r")
        raw = np.zeros(len(names) + 1, dtype=np.int64)
        for at in range(0, len(found), _STEP):
            raw += np.bincount(found[at : at + _STEP], minlength=len(raw))
        kept, account = _kept(names, raw[1:], self.plan.min_count, self.plan.most)
        numbers = np.zeros(len(raw), dtype=np.int32)
        numbers[np.array(kept, dtype=np.int64) + 1] = np.arange(1, len(kept) + 1, dtype=np.int32)
        with (folder / IDS).open("wb") as file:
            for at in range(0, len(found), _STEP):
                numbers[found[at : at + _STEP]].astype("<i4").tofile(file)
        del found
        counts = np.append(account["words_left_out"], raw[1:][kept]).astype("<i8")
        counts.tofile(folder / COUNTS)
        listed = [UNKNOWN, *(names[number] for number in kept)]
        (folder / WORDS).write_bytes("".join(f"{word}\n" for word in listed).encode())
        for name in (LINES, DOCUMENTS):
            (work / name).rename(folder / name)
        self.plan.rule.save(folder)
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "files": {name: (folder / name).stat().st_size for name in (*_ARRAYS, WORDS)},
            "account": {**asdict(tally), **account, "made_from": self.plan.key()},
        }
        write_json(folder / MANIFEST, manifest)
        write_hashes(folder)
        for path in (*sorted(folder.rglob("*")), folder):
            sync(path)
        self.target.place(folder)


_ARRAYS = (IDS, LINES, DOCUMENTS, COUNTS)


def _append(
    grown: GrowingFiles, tally: WordTally, documents: Documents, splitter: WordSplitter
) -> None:
    """Put the words of a block behind those that are there; lines without any are counted."""
    split = splitter.split(documents.sentences)
    filled = split.lengths > 0
    places = np.concatenate([[0], np.cumsum(filled)])
    ends = np.cumsum(split.lengths[filled]) + tally.words
    starts = np.unique(places[np.array(documents.starts, dtype=np.int64)]) + tally.lines
    starts = starts[starts > tally.last_start]
    grown.append(IDS, split.numbers.astype("<i4").tobytes())
    grown.append(LINES, ends.astype("<i8").tobytes())
    grown.append(DOCUMENTS, starts.astype("<i8").tobytes())
    grown.append(NEW, "".join(f"{word}\n" for word in split.new).encode())
    tally.blocks += 1
    tally.words += len(split.numbers)
    tally.lines += len(ends)
    tally.documents += len(starts)
    tally.last_start = int(starts[-1]) if len(starts) else tally.last_start
    tally.characters += sum(map(len, documents.sentences))
    tally.lines_without_words += int(len(filled) - filled.sum())
    tally.skipped_lines += documents.skipped
    tally.surrogates += documents.surrogates
    tally.examples += documents.examples[: max(0, MOST_EXAMPLES - len(tally.examples))]


def _kept(
    names: list[str], counts: NDArray[np.int64], min_count: int, most: int | None
) -> tuple[list[int], dict[str, Any]]:
    """The words that stay, by falling count and then code point, and an account of the others."""
    order = sorted(range(len(names)), key=lambda n: (-counts[n], names[n]))
    reserved = [n for n in order if names[n] in RESERVED]
    listed = [n for n in order if names[n] not in RESERVED]
    kept = [n for n in listed if counts[n] >= min_count][:most]
    out = Counter({names[n]: int(counts[n]) for n in listed[len(kept) :]})
    return kept, {
        "vocab_size": len(kept) + 1,
        "distinct_words": len(names),
        "distinct_left_out": len(out),
        "words_left_out": sum(out.values()) + int(sum(counts[n] for n in reserved)),
        "left_out": dict(out.most_common(EXAMPLES_LEFT_OUT)),
        "reserved": {names[n]: int(counts[n]) for n in reserved},
        "min_count": min_count,
        "most": most,
    }


def _read_new(path: Path) -> list[str]:
    return path.read_bytes().decode().split("\n")[:-1]
