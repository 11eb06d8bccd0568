"""Supervisor: keeps the worker of one model running; a dead or stopped one is started again."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque

from bertsmith.errors import FolderError
from bertsmith.serve.failures import FailureKind, RequestError, without_paths
from bertsmith.serve.worker_process import WorkerDiedError, WorkerProcess, WorkerSettings

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.25  # between two looks at a worker
HANG_SECONDS = 15.0  # without a beat, which comes every half second from a thread of its own
MOST_DEATHS, DEATHS_SECONDS = 5, 60.0
BACKOFF = (0.1, 0.5, 1.0, 2.0, 5.0)
START_SECONDS = 600.0  # to load a model, on a slow disk too


class Supervisor:
    """One model's worker, and what to say while there is none."""

    def __init__(self, name: str, settings: WorkerSettings) -> None:
        self.name = name
        self.settings = settings
        self.restarts = 0
        self._worker: WorkerProcess | None = None
        self._deaths: deque[float] = deque(maxlen=MOST_DEATHS)
        self._watching: asyncio.Task[None] | None = None
        self._given_up = False
        self.stopping = False

    async def start(self) -> WorkerProcess:
        """Start the first worker; a model that does not load is an error of the whole service."""
        try:
            self._worker = await WorkerProcess.start(self.settings, patience=START_SECONDS)
        except WorkerDiedError as error:
            raise FolderError(f"the model {self.name} does not start: {error}") from error
        self._watching = asyncio.create_task(self._watch())
        return self._worker

    @property
    def is_alive(self) -> bool:
        """Whether a worker can answer now."""
        return self._worker is not None and not self._worker.died.is_set()

    @property
    def worker(self) -> WorkerProcess:
        """The worker; while there is none, the answer is 503."""
        if self._worker is not None and not self._worker.died.is_set():
            return self._worker
        if self._given_up:
            raise RequestError(
                FailureKind.UNAVAILABLE,
                f"the worker of {self.name} ended {MOST_DEATHS} times within a minute and is not "
                "started again; the log of the service has the reasons",
            )
        raise RequestError(
            FailureKind.UNAVAILABLE,
            f"the worker of {self.name} is being started; try again in a moment",
            retry_after=1,
        )

    async def stop(self, patience: float) -> None:
        """End the worker after what it has been given."""
        self.stopping = True
        if self._watching is not None:
            self._watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watching
        if self._worker is not None:
            await self._worker.stop(patience)

    async def _watch(self) -> None:
        clock = asyncio.get_running_loop().time
        while not self.stopping:
            worker = self._worker
            if worker is None or worker.died.is_set():
                if worker is not None:
                    worker.kill()
                    code = await asyncio.to_thread(worker.process.wait)
                    log.warning("the worker of %s ended with code %s", self.name, code)
                    self._worker = None
                if not await self._restart(clock()):
                    return
                continue
            hung = clock() - worker.last_beat > HANG_SECONDS
            if hung or worker.is_stopped():
                why = "gave no sign of life" if hung else "was stopped"
                log.warning("the worker of %s %s and is ended", self.name, why)
                worker.kill()
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await worker.died.wait()

    async def _restart(self, now: float) -> bool:
        """Start a new worker; False: too many have died."""
        self._deaths.append(now)
        if len(self._deaths) == MOST_DEATHS and now - self._deaths[0] < DEATHS_SECONDS:
            self._given_up = True
            log.error("the worker of %s ended %d times in a minute", self.name, MOST_DEATHS)
            return False
        recent = sum(now - death < DEATHS_SECONDS for death in self._deaths)
        await asyncio.sleep(BACKOFF[min(recent, len(BACKOFF)) - 1])
        try:
            self._worker = await WorkerProcess.start(self.settings, patience=START_SECONDS)
        except WorkerDiedError as error:
            log.warning("the worker of %s did not start: %s", self.name, without_paths(str(error)))
            return True  # counted as a death at the next look
        self.restarts += 1
        return True
