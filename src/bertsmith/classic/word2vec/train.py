"""word2vec from a stream of words to a model folder; the same call resumes after an epoch."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from bertsmith.classic.stream.folder import WordStream
from bertsmith.classic.word2vec.engines import (
    EngineName,
    WordEngine,
    choose_engine,
    lanes_of,
    make_engine,
)
from bertsmith.classic.word2vec.folder import (
    CONFIG,
    TrainedWords,
    TrainingState,
    load_state,
    open_model,
    save_model,
    save_state,
)
from bertsmith.classic.word2vec.settings import Word2VecSettings
from bertsmith.classic.word2vec.tables import (
    LONGEST_PIECE,
    Schedule,
    Tables,
    WordWeights,
    chunk_seed,
)
from bertsmith.classic.word_vectors.word_vectors import WordVectors
from bertsmith.errors import ConfigError, DivergedError, TargetExistsError
from bertsmith.files.digest import json_digest
from bertsmith.files.folder_lock import FolderLock
from bertsmith.hardware.environment import thread_count

log = logging.getLogger(__name__)

MOST_THREADS = 1_024
_LOOK = 0.2  # seconds between two looks at the threads


@dataclass(frozen=True, slots=True, kw_only=True)
class WordProgress:
    """How far training is; `loss` is that of the last finished epoch."""

    epoch: int
    epochs: int
    share: float
    words: int
    words_per_second: float
    left: float
    rate: float
    loss: float | None


WordWatcher = Callable[[WordProgress], None]


def train_word2vec(
    stream: WordStream,
    settings: Word2VecSettings,
    out: Path | None = None,
    *,
    threads: int | None = None,
    engine: EngineName = "auto",
    watch: WordWatcher | None = None,
) -> TrainedWords:
    """Train, or resume training, and write the folder `out`, if one is given.

    One thread repeats a run bit for bit; several threads write to the same vectors and do not.
    After every epoch a checkpoint is written next to `out`; it is removed when the folder is there.
    """
    threads = thread_count() if threads is None else threads
    if not 1 <= threads <= MOST_THREADS:
        raise ConfigError(f"threads must be from 1 to {MOST_THREADS}, not {threads}")
    if out is None:
        return _Training(stream, settings, choose_engine(engine), threads, watch).run(None)
    out = Path(out).absolute()
    key = run_key(stream, settings)
    work = out.parent / f".{out.name}.training"
    if (out / CONFIG).is_file():
        found = _finished(out, key)
        if work.exists():  # of a call that was killed when all was done
            with FolderLock(work, work="training", instead="folder") as lock:
                lock.remove_folder()
        return found
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise TargetExistsError(f"{out} exists and is no folder of word vectors; give another name")
    with FolderLock(work, work="training", instead="folder") as lock:
        training = _Training(stream, settings, choose_engine(engine), threads, watch)
        result = training.run(work)
        about = {name: value for name, value in result.facts.items() if name != "seconds"}
        save_model(out, stream, training.weights, settings, {**about, "key": key})
        lock.remove_folder()
    return result


def run_key(stream: WordStream, settings: Word2VecSettings) -> str:
    """What must not change for training to resume: the text and the settings."""
    text = stream.account.get("made_from")
    if text is None:
        text = [len(stream.ids), stream.lines, len(stream.words), int(np.sum(stream.counts))]
    return json_digest([text, settings.model_dump(mode="json")])


def _finished(out: Path, key: str) -> TrainedWords:
    found = open_model(out)
    if found.facts.get("key") != key:
        raise TargetExistsError(
            f"{out} holds word vectors of another text or other settings; give another name or "
            "remove it first"
        )
    return found


class _Training:
    """One run, from tables to weights."""

    def __init__(
        self,
        stream: WordStream,
        settings: Word2VecSettings,
        engine: str,
        threads: int,
        watch: WordWatcher | None,
    ) -> None:
        self.stream = stream
        self.settings = settings
        self.threads = threads
        self.tables = Tables.of(stream, settings)
        self.weights = WordWeights.start(self.tables.words, settings, lanes_of(engine))
        self.engine = make_engine(engine, self.tables, self.weights, settings, threads=threads)
        self._watch = watch
        self._schedule = Schedule.of(settings, self.tables.known)
        self._began = time.monotonic()
        self._resumed = 0

    def run(self, work: Path | None) -> TrainedWords:
        """All epochs that are not done yet; a checkpoint after each."""
        settings, tables = self.settings, self.tables
        if tables.cut_lines:
            log.info(
                "%s lines of more than %s words were cut into pieces of so many: words on two "
                "sides of a cut are no neighbors",
                f"{tables.cut_lines:,}",
                f"{LONGEST_PIECE:,}",
            )
        key = run_key(self.stream, settings)
        state = None if work is None else load_state(work, key, self.weights)
        state = state or TrainingState(key=key)
        if state.losses:
            log.info("resumes after epoch %s", len(state.losses))
        losses = list(state.losses)
        self._resumed = len(losses) * tables.known
        self.engine.seen[0] = self._resumed
        self._began = time.monotonic()
        for epoch in range(len(losses), settings.epochs):
            total, pairs = run_epoch(
                self.engine,
                tables,
                seed=settings.seed,
                epoch=epoch,
                threads=self.threads,
                look=lambda epoch=epoch: self._look(epoch, losses),  # type: ignore[misc]
            )
            if not pairs:
                raise ConfigError(
                    f"epoch {epoch + 1} has no two words next to each other: frequent words are "
                    f"dropped at random, here nearly all of {tables.known:,} (sample is "
                    f"{settings.sample:g}); give more text, or a sample of 0"
                )
            losses.append(total / pairs)
            self._look(epoch, losses)
            seconds = state.seconds + time.monotonic() - self._began
            if work is not None:
                done = TrainingState(key=key, losses=losses, seconds=seconds)
                save_state(work, done, self.weights)
        vectors = np.ascontiguousarray(self.weights.inputs[:, : settings.dim])
        return TrainedWords(
            vectors=WordVectors(self.stream.words[1:], vectors),
            settings=settings,
            losses=tuple(losses),
            facts=self._facts(losses, state.seconds + time.monotonic() - self._began),
        )

    def _facts(self, losses: list[float], seconds: float) -> dict[str, Any]:
        return {
            "losses": losses,
            "engine": self.engine.name,
            "threads": self.threads,
            "words": self.tables.known,
            "cut_lines": self.tables.cut_lines,
            "seconds": round(seconds, 3),
        }

    def _look(self, epoch: int, losses: list[float]) -> None:
        if self._watch is None:
            return
        seen = int(self.engine.seen[0])
        total = self._schedule.total
        elapsed = max(time.monotonic() - self._began, 1e-9)
        speed = (seen - self._resumed) / elapsed
        self._watch(
            WordProgress(
                epoch=epoch + 1,
                epochs=self.settings.epochs,
                share=min(1.0, seen / total),
                words=seen,
                words_per_second=speed,
                left=(total - seen) / speed if speed else float("inf"),
                rate=self._schedule.rate(seen),
                loss=losses[-1] if losses else None,
            )
        )


def run_epoch(
    engine: WordEngine,
    tables: Tables,
    *,
    seed: int,
    epoch: int,
    threads: int,
    look: Callable[[], None] = lambda: None,
) -> tuple[float, float]:
    """The sum of the losses and the number of predictions of one epoch, in float64.

    The random numbers of a chunk come from seed, epoch and chunk, so that one thread repeats a run
    bit for bit. Several threads write to the same weights without locks (Hogwild, Recht et al.
    2011), so that two runs differ. `look` is called a few times per second.
    """
    chunks = tables.chunks
    numbers = count()  # next() is atomic
    results: list[tuple[float, float]] = []
    faults: list[BaseException] = []
    stop = threading.Event()

    def work() -> None:
        try:
            while not stop.is_set() and (number := next(numbers)) < len(chunks) - 1:
                own = chunk_seed(seed, epoch, number)
                found = engine.run(int(chunks[number]), int(chunks[number + 1]), own)
                results.append(found)
        except BaseException as fault:
            faults.append(fault)
            stop.set()

    workers = [threading.Thread(target=work, daemon=True) for _ in range(threads)]
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            while worker.is_alive():
                worker.join(_LOOK)
                look()
    finally:
        stop.set()
        for worker in workers:
            if worker.ident is not None:
                worker.join()
    if faults:
        raise faults[0]
    loss = math.fsum(one for one, _ in results)
    if not math.isfinite(loss):
        raise DivergedError(
            f"the loss of epoch {epoch + 1} is not finite; the epochs before it are safe: train "
            "with a lower rate"
        )
    return loss, math.fsum(pairs for _, pairs in results)
