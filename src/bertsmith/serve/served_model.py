"""ServedModel: one model of the service: its tokenizer, its queue, its worker."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

from bertsmith.errors import TextError
from bertsmith.folders.read import load_tokenizer
from bertsmith.serve.failures import FailureKind, RequestError
from bertsmith.serve.frames import Ids
from bertsmith.serve.limits import Limits
from bertsmith.serve.long_texts import LongTexts
from bertsmith.serve.metrics import Metrics
from bertsmith.serve.queue import BatchKind, FairQueue, WaitingText
from bertsmith.serve.routes import PartsOfAnswer
from bertsmith.serve.shares import Caller, Shares
from bertsmith.serve.supervisor import Supervisor
from bertsmith.serve.worker_process import WorkerSettings

MOST_STREAMS = 64  # answers outside of batches; the worker computes four of them at a time
AHEAD = 2  # batches at the worker: one it computes, one it finds when it is done
AHEAD_SECONDS = 0.01  # before the first of them should be done, the other one is made
BATCH_SECONDS = 0.1  # a batch takes no longer, so that who comes next does not wait long
LEAST_BATCH = 512  # tokens, however slow the model is
SMOOTHING = 0.1  # of the measured speed
SLOWING = 0.3  # the same where it falls: what is accepted by an old speed would wait too long


@dataclass(frozen=True, slots=True)
class Tokens:
    """The token ids of one text, and how many were cut."""

    ids: Ids
    cut: int


@dataclass(frozen=True, slots=True)
class CutText:
    """A text as it goes to the worker, its number of tokens, and how many were cut."""

    text: str
    tokens: int
    cut: int


class ServedModel:
    """A model that answers requests."""

    def __init__(
        self, name: str, settings: WorkerSettings, limits: Limits, metrics: Metrics
    ) -> None:
        self.name = name
        self.limits = limits
        self.supervisor = Supervisor(name, settings)
        self.tokenizer = load_tokenizer(settings.folder)
        self.long_texts = LongTexts()
        self._metrics = metrics
        self._queue: FairQueue | None = None
        self._feeding: asyncio.Task[None] | None = None
        self._running: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(AHEAD)
        self._streams = Shares(MOST_STREAMS)
        self._done_at = 0.0  # when the worker should be done with all it has
        self._last_done = 0.0
        self.description: dict[str, Any] = {}

    async def start(self) -> None:
        """Start the worker, and feed it from the queue."""
        worker = await self.supervisor.start()
        self.description = worker.description
        speed = float(self.description["tokens_per_second"])
        self._queue = FairQueue(limit=self._limit(speed), speed=speed)
        self._feeding = asyncio.create_task(self._feed(self._queue))

    @property
    def abilities(self) -> frozenset[str]:
        """The operations of this model."""
        return frozenset(self.description["abilities"])

    @property
    def longest(self) -> int | None:
        """Tokens per text: the model's, or the limit of the service."""
        limits = (self.limits.text_tokens, self.description["max_length"])
        return min((one for one in limits if one is not None), default=None)

    @property
    def batch_tokens(self) -> int:
        """Tokens per batch at the speed that was measured."""
        quick = int(BATCH_SECONDS * self.queue.speed)
        return min(self.limits.batch_tokens, max(LEAST_BATCH, quick))

    @property
    def queue(self) -> FairQueue:
        """What waits."""
        if self._queue is None:
            raise RequestError(FailureKind.UNAVAILABLE, f"{self.name} is being started")
        return self._queue

    async def tokenize(
        self, texts: Sequence[str], caller: Caller, prompt: str | None = None
    ) -> tuple[list[Tokens], int]:
        """Ids of texts under a prompt of the model, and how many leading rows are not pooled."""
        prefix, skipped = "", 0
        chosen = prompt if prompt is not None else self.description["default_prompt"]
        if chosen is not None:
            prompts = self.description["prompts"]
            if chosen not in prompts:
                known = ", ".join(sorted(prompts)) or "none"
                raise RequestError(
                    FailureKind.INVALID,
                    f"the model has no prompt of this name; it has: {known}",
                    field="prompt_name",
                )
            prefix, skipped = prompts[chosen]
        whole = [prefix + text for text in texts]
        if self.description["lowercase"]:
            whole = [text.lower() for text in whole]
        ids, cuts = await self._fast_ids(whole, self.longest, caller)
        return [Tokens(*pair) for pair in zip(ids, cuts, strict=True)], skipped

    async def within(self, texts: Sequence[str], caller: Caller, *, may_cut: bool) -> list[CutText]:
        """Texts of an operation, none with more tokens than the limits allow.

        Models that read a text in windows would read any number of tokens. Where an operation
        needs the whole text, a longer one is refused.
        """
        most = self.limits.text_tokens or self.limits.document_tokens
        ids, _ = await self._fast_ids(list(texts), None, caller)
        found = []
        for text, one in zip(texts, ids, strict=True):
            if len(one) <= most:
                found.append(CutText(text, len(one), 0))
                continue
            if not may_cut:
                raise RequestError(
                    FailureKind.TOO_LARGE,
                    f"a text has {len(one):,} tokens; at most {most:,} are read",
                )
            encoding = await self.long_texts.run(
                len(text), caller, partial(self.tokenizer.encode, text)
            )
            content = encoding.offsets[encoding.fields >= 0]
            room = max(1, most - (len(one) - len(content)))
            found.append(CutText(text[: int(content[room - 1][1])], most, len(content) - room))
        return found

    async def _fast_ids(
        self, texts: list[str], most: int | None, caller: Caller
    ) -> tuple[list[Ids], list[int]]:
        size = sum(map(len, texts))
        try:
            return await self.long_texts.run(
                size, caller, lambda: self.tokenizer.fast_ids(texts, most)
            )
        except TextError as error:
            raise RequestError(FailureKind.TOKENS, str(error)) from None

    async def vectors(
        self, tokens: Sequence[Tokens], options: dict[str, Any], caller: Caller
    ) -> list[Any]:
        """The vectors of texts, each in a batch with those of whoever else asks now."""
        kind = BatchKind(None, tuple(sorted(options.items())))
        return await self._run(kind, [(one.ids, len(one.ids)) for one in tokens], caller)

    async def call(
        self, operation: str, rows: Sequence[tuple[dict[str, Any], int]], caller: Caller
    ) -> list[dict[str, Any]]:
        """The results of an operation on JSON rows, each given with its number of tokens."""
        return await self._run(BatchKind(operation), rows, caller)

    async def stream(self, operation: str, row: dict[str, Any], caller: Caller) -> PartsOfAnswer:
        """The parts of a result; not in a batch with others."""
        if not self._streams.take(caller.client):
            raise RequestError(
                FailureKind.OVERLOADED,
                f"{self._streams.held} texts are being written already; try again in 1 s",
                retry_after=1,
            )
        parts = self.supervisor.worker.stream(operation, row)
        try:
            async for part in parts:
                yield part
        finally:
            self._streams.give(caller.client)
            await parts.aclose()

    async def stop(self, patience: float) -> None:
        """Finish what waits, then end the worker."""
        if self._feeding is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    while len(self.queue) or self._running:
                        await asyncio.sleep(0.02)
            self._feeding.cancel()
        self.long_texts.close()
        await self.supervisor.stop(patience)

    async def _run(
        self, kind: BatchKind, work: Sequence[tuple[Any, int]], caller: Caller
    ) -> list[Any]:
        loop = asyncio.get_running_loop()
        self.supervisor.worker  # noqa: B018 - 503 at once, not after waiting in the queue
        pieces = [
            WaitingText(
                kind=kind,
                work=one,
                tokens=max(1, size),
                client=caller.client,
                deadline=caller.deadline,
                future=loop.create_future(),
            )
            for one, size in work
        ]
        self.queue.put(pieces)
        try:
            async with asyncio.timeout_at(caller.deadline):
                results = await asyncio.gather(*(piece.future for piece in pieces))
        except TimeoutError:
            raise RequestError(
                FailureKind.DEADLINE, "the request was not answered before its deadline"
            ) from None
        finally:
            for piece in pieces:
                piece.future.cancel()
        caller.queued += max((piece.taken - piece.entered for piece in pieces), default=0.0)
        return results

    async def _feed(self, queue: FairQueue) -> None:
        while True:
            await self._slots.acquire()
            await self._almost_done()
            batch = await queue.take(self.batch_tokens)
            task = asyncio.create_task(self._compute(batch))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _almost_done(self) -> None:
        """Wait until the batch at the worker is nearly computed.

        The next one is made as late as the worker allows: who comes meanwhile is in it.
        """
        while self._running:
            left = self._done_at - time.perf_counter() - AHEAD_SECONDS
            if left <= 0:
                return
            await asyncio.wait(self._running, timeout=left, return_when=asyncio.FIRST_COMPLETED)

    async def _compute(self, batch: list[WaitingText]) -> None:
        tokens = sum(piece.tokens for piece in batch)
        self._metrics.batch(self.name, len(batch), tokens)
        start = time.perf_counter()
        self._done_at = max(start, self._done_at) + tokens / self.queue.speed
        try:
            results = await self._results(batch)
        except RequestError as error:
            for piece in batch:
                if piece.is_wanted:
                    piece.future.set_exception(error)
            return
        finally:
            self._slots.release()
            begun, self._last_done = max(start, self._last_done), time.perf_counter()
            if len(self._running) <= 1:  # this one
                self._done_at = self._last_done
        for piece, result in zip(batch, results, strict=True):
            if piece.is_wanted:
                piece.future.set_result(result)
        self._measure(tokens, self._last_done - begun)

    async def _results(self, batch: list[WaitingText]) -> Sequence[Any]:
        worker = self.supervisor.worker
        kind = batch[0].kind
        work = [piece.work for piece in batch]
        if kind.operation is not None:
            return await worker.call(kind.operation, work)
        options: dict[str, Any] = dict(kind.options)
        vectors = await worker.rows(work, options)
        if not options.get("all"):
            return vectors  # type: ignore[return-value]
        ends = [0]
        for ids in work:
            ends.append(ends[-1] + len(ids))
        return [vectors[start:end] for start, end in pairwise(ends)]

    def _measure(self, tokens: int, seconds: float) -> None:
        """Follow the speed: Retry-After and the size of the queue are made from it.

        A batch counts by its size: what a short one takes is not the time of its tokens.
        """
        queue = self.queue
        found = tokens / max(seconds, 1e-6)
        part = SMOOTHING if found > queue.speed else SLOWING
        queue.speed += part * min(1.0, tokens / self.batch_tokens) * (found - queue.speed)
        queue.limit = self._limit(queue.speed)

    def _limit(self, speed: float) -> int:
        limit = self.limits.queue_tokens or int(self.limits.queue_seconds * speed)
        return max(limit, self.limits.batch_tokens)
