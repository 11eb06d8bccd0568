"""From files of text to a corpus on disk: in parallel, in bounded memory, safe to kill anywhere.

Workers encode blocks; this process alone reads and writes, in the order of the input, so the result
does not depend on the number of workers. Everything grows in a hidden folder next to the target,
with a journal; the target appears by one rename when it is whole.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from bertsmith.corpus.journal import ARRAYS, STARTS, GrowingCorpus
from bertsmith.corpus.reading import BLOCK, CorpusReader
from bertsmith.corpus.report import CorpusReport, make_manifest, report_from, source_entry
from bertsmith.corpus.shards import MANIFEST, TOKENIZER, open_corpus, vocabulary_of
from bertsmith.corpus.sources import (
    CorpusSettings,
    CorpusSource,
    choose_segmenter,
    describe_sources,
    find_sources,
)
from bertsmith.corpus.worker import EncodeSettings, encoded_blocks
from bertsmith.errors import HardwareError, InputFileError, TargetExistsError, WriteError
from bertsmith.files.digest import file_digest, json_digest
from bertsmith.files.folder_hashes import write_hashes
from bertsmith.files.growing_folder import GrowingFolder
from bertsmith.files.pool import Processes
from bertsmith.files.strict_json import write_json
from bertsmith.hardware.environment import thread_count
from bertsmith.text.tokenizer import Tokenizer

log = logging.getLogger(__name__)

CORPUS = "corpus"  # in the hidden folder: what becomes the corpus
Progress = Callable[[int, float], None]
Notice = Callable[[str], None]


def build_corpus(
    paths: Iterable[Path],
    tokenizer: Tokenizer,
    out: Path,
    settings: CorpusSettings = CorpusSettings(),  # noqa: B008 - frozen
    *,
    workers: int | None = None,
    progress: Progress = lambda documents, share: None,
    notice: Notice = log.info,
    block_bytes: int = BLOCK,
) -> CorpusReport:
    """Write the corpus `out`, or resume where the same call was interrupted.

    `progress` hears documents and the share of the input; `notice` what was decided.
    """
    folder = GrowingFolder(out, manifest=MANIFEST, holds="corpus", instead="--out")
    sources = find_sources(paths, settings)
    for line in describe_sources(sources):
        notice(line)
    with folder:
        build = _Build(sources, tokenizer, folder, settings, notice)
        if folder.finished:
            return build.compare()
        return build.run(workers or thread_count(), progress, block_bytes)


class _Build:
    """One build, from settled sources to the renamed folder."""

    def __init__(
        self,
        sources: list[CorpusSource],
        tokenizer: Tokenizer,
        target: GrowingFolder,
        settings: CorpusSettings,
        notice: Notice,
    ) -> None:
        self._sources = sources
        self._tokenizer = tokenizer
        self._target = target
        self._folder = target.path / CORPUS
        self._on_error = settings.on_error
        self._notice = notice
        self._vocabulary = vocabulary_of(tokenizer)
        self._encode = EncodeSettings(
            tokenizer=self._folder / TOKENIZER,
            segmenter=choose_segmenter(settings.segmenter, sources, notice),
            on_error=settings.on_error,
            wide=tokenizer.vocab_size > 1 << 16,
        )

    def run(self, workers: int, progress: Progress, block_bytes: int) -> CorpusReport:
        """Encode everything that is not yet written, then put the corpus in place."""
        start = time.perf_counter()
        _prepare(self._folder)
        self._tokenizer.save(self._folder / TOKENIZER)
        grown = GrowingCorpus(self._target.grow(self._key(block_bytes), STARTS, CORPUS))
        reading = self._unwritten(grown, block_bytes)
        resumed, known_bytes = grown.tally.blocks, grown.tally.text_bytes
        pieces = encoded_blocks(reading, self._encode, Processes(workers))
        mark = grown.mark
        try:
            for piece, encoded in pieces:
                grown.append(encoded, piece.text_bytes)
                mark = piece.mark
                progress(grown.tally.documents, piece.share)
                if grown.due:
                    grown.save(mark)
            grown.save(mark)
            report = self._finish(grown, reading.digests)
        except (InputFileError, HardwareError, KeyboardInterrupt, SystemExit):
            grown.save(mark)  # the same command resumes from here
            raise
        finally:
            pieces.close()
            grown.close()
        return replace(
            report,
            seconds=time.perf_counter() - start,
            new_bytes=grown.tally.text_bytes - known_bytes,
            resumed_blocks=resumed,
        )

    def compare(self) -> CorpusReport:
        """The report of a corpus that stands there already, if it was made from the same."""
        out = self._target.target
        corpus = open_corpus(out)
        reading = CorpusReader(self._sources, BLOCK, self._on_error)
        for _ in reading:
            continue
        entries = self._entries(reading.digests)
        made = (corpus.vocabulary, corpus.manifest["segmenter"], corpus.manifest["sources"])
        if made != (self._vocabulary, self._encode.segmenter, entries):
            raise TargetExistsError(
                f"{out} exists and was made from other texts, settings or another vocabulary; "
                "give another name or remove it first"
            )
        self._notice(f"{out} is complete already: nothing to do")
        return report_from(corpus.manifest, [])

    def _key(self, block_bytes: int) -> str:
        """What must not change for a build to resume."""
        settings = [
            self._entries([""] * len(self._sources)),
            self._vocabulary,
            self._encode.segmenter,
            self._encode.on_error,
            block_bytes,
            "case",  # words.bin of an older start has none
        ]
        return json_digest(settings)

    def _entries(self, digests: list[str]) -> list[dict[str, Any]]:
        pairs = zip(self._sources, digests, strict=True)
        return [source_entry(source, digest, self._on_error) for source, digest in pairs]

    def _unwritten(self, grown: GrowingCorpus, block_bytes: int) -> CorpusReader:
        """The input from the first block that is not in the files yet."""
        reading = CorpusReader(self._sources, block_bytes, self._on_error)
        if grown.tally.blocks == 0:
            return reading
        mark = ""
        for _ in range(grown.tally.blocks):
            piece = next(reading, None)
            mark = piece.mark if piece is not None else ""
        if mark == grown.mark:
            self._notice(f"resuming after {grown.tally.sentences:,} sentences of an earlier start")
            return reading
        self._notice("the texts changed since the earlier start: starting over")
        grown.restart()
        return CorpusReader(self._sources, block_bytes, self._on_error)

    def _finish(self, grown: GrowingCorpus, digests: list[str]) -> CorpusReport:
        """Close the arrays, write the manifest last, and rename the folder into place."""
        if grown.tally.tokens == 0:
            names = ", ".join(source.path.name for source in self._sources[:5])
            raise InputFileError(f"nothing usable: no sentence with a token in {names}")
        files = grown.finish()
        for file in sorted((self._folder / TOKENIZER).iterdir()):
            entry = {"size": file.stat().st_size, "sha256": file_digest(file)}
            files[f"{TOKENIZER}/{file.name}"] = entry
        manifest = make_manifest(
            self._folder,
            tokenizer=self._tokenizer,
            vocabulary=self._vocabulary,
            segmenter=self._encode.segmenter,
            sources=self._entries(digests),
            tally=grown.tally,
            files=files,
        )
        write_json(self._folder / MANIFEST, manifest)
        write_hashes(self._folder)
        self._target.place(self._folder)
        return report_from(manifest, grown.tally.examples)


def _prepare(folder: Path) -> None:
    """Make the folder that becomes the corpus; keep the arrays of an earlier start alone."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for entry in folder.iterdir():
            if entry.is_dir():
                shutil.rmtree(entry)
            elif entry.name not in ARRAYS:
                entry.unlink()
    except OSError as error:
        raise WriteError(f"cannot write {folder}: {error.strerror or error}") from error
