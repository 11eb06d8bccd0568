"""WorkerProcess: one running worker as the front sees it; requests go out, results come back."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from bertsmith.serve.failures import FailureKind, RequestError
from bertsmith.serve.frames import (
    FrameKind,
    Ids,
    Vectors,
    WireFrame,
    pack_ids,
    read_frame,
    unpack_vectors,
)
from bertsmith.serve.routes import PartsOfAnswer

BUFFER = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """What a worker loads."""

    folder: Path
    precision: str = "auto"
    threads: int | None = None
    index: Path | None = None

    def to_bytes(self) -> bytes:
        """As the worker reads it."""
        return orjson.dumps(
            {
                "folder": str(self.folder),
                "precision": self.precision,
                "threads": self.threads,
                "index": None if self.index is None else str(self.index),
            }
        )


class WorkerDiedError(Exception):
    """The worker ended, or answered in a form that is no frame."""


class WorkerProcess:
    """A worker; `died` is set when it can answer no more."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.process = process
        self.description: dict[str, Any] = {}
        self.died = asyncio.Event()
        self.last_beat = 0.0
        self._reader, self._writer = reader, writer
        self._number = 0
        self._waiting: dict[int, asyncio.Queue[WireFrame | None]] = {}
        self._listening: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, settings: WorkerSettings, *, patience: float) -> WorkerProcess:
        """Start a worker and wait until its model is ready; at most `patience` seconds."""
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", "bertsmith.serve.worker.main", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # a signal to the front's group is not for the worker
            )
        reader, writer = await asyncio.open_connection(sock=ours, limit=BUFFER)
        worker = cls(process, reader, writer)
        try:
            async with asyncio.timeout(patience):
                writer.write(WireFrame(FrameKind.CALL, 0, settings.to_bytes()).to_bytes())
                frame = await read_frame(reader)
        except (TimeoutError, asyncio.IncompleteReadError, OSError) as error:
            worker.kill()
            code = process.wait()
            raise WorkerDiedError(f"the worker did not come up (exit code {code})") from error
        except BaseException:
            worker.kill()
            raise
        if frame.kind is not FrameKind.READY:
            worker.kill()
            process.wait()
            raise WorkerDiedError(str(frame.json().get("error", "the worker refused the model")))
        worker.description = frame.json()
        worker.last_beat = asyncio.get_running_loop().time()
        worker._listening = asyncio.create_task(worker._listen())
        return worker

    async def rows(self, texts: Sequence[Ids], options: dict[str, Any]) -> Vectors:
        """Vectors of texts given by their ids: -> (B, D), or (T, D) of all tokens."""
        frame = await self._ask(FrameKind.ROWS, pack_ids(texts, options))
        return unpack_vectors(frame.payload)

    async def call(self, operation: str, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """The results of an operation on JSON rows."""
        payload = orjson.dumps({"operation": operation, "rows": list(rows)})
        results: list[dict[str, Any]] = (await self._ask(FrameKind.CALL, payload)).json()
        return results

    async def stream(self, operation: str, row: dict[str, Any]) -> PartsOfAnswer:
        """The parts of a result."""
        payload = orjson.dumps({"operation": operation, "row": row})
        number, answers = self._send(FrameKind.STREAM, payload)
        try:
            while (frame := _checked(await answers.get())).payload:
                yield frame.json()
        finally:
            self._forget(number)

    def is_stopped(self) -> bool:
        """Whether the process was stopped by a signal (SIGSTOP): alive, but never to answer."""
        try:
            status = Path(f"/proc/{self.process.pid}/stat").read_text()
        except OSError:
            return False
        return status.rpartition(")")[2].split()[0] in "Tt"

    def kill(self) -> None:
        """End the process at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self._writer.close()
        self._lose()

    async def stop(self, patience: float) -> None:
        """Ask the worker to end after what it has been given; kill it if it does not."""
        with contextlib.suppress(OSError):
            self._writer.write(WireFrame(FrameKind.STOP, 0).to_bytes())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await asyncio.to_thread(self.process.wait, patience)
        if self.process.poll() is None:
            self.kill()
            self.process.wait()
        if self._listening is not None:
            self._listening.cancel()

    def _send(self, kind: FrameKind, payload: bytes) -> tuple[int, asyncio.Queue[WireFrame | None]]:
        if self.died.is_set():
            raise _gone()
        self._number = self._number % 0xFFFF_FFFF + 1
        answers: asyncio.Queue[WireFrame | None] = asyncio.Queue()
        self._waiting[self._number] = answers
        self._writer.write(WireFrame(kind, self._number, payload).to_bytes())
        return self._number, answers

    async def _ask(self, kind: FrameKind, payload: bytes) -> WireFrame:
        number, answers = self._send(kind, payload)
        try:
            return _checked(await answers.get())
        finally:
            self._forget(number)

    def _forget(self, number: int) -> None:
        answers = self._waiting.pop(number, None)
        if answers is not None and answers.empty() and not self.died.is_set():
            self._writer.write(WireFrame(FrameKind.CANCEL, number).to_bytes())

    async def _listen(self) -> None:
        clock = asyncio.get_running_loop().time
        try:
            while True:
                frame = await read_frame(self._reader)
                self.last_beat = clock()
                answers = self._waiting.get(frame.number)
                if frame.kind is not FrameKind.BEAT and answers is not None:
                    answers.put_nowait(frame)
        except Exception:  # whatever it was, nothing can be read any more
            self._lose()

    def _lose(self) -> None:
        self.died.set()
        for answers in self._waiting.values():
            answers.put_nowait(None)


def _checked(frame: WireFrame | None) -> WireFrame:
    if frame is None:
        raise _gone()
    if frame.kind is FrameKind.FAILED:
        raise RequestError(FailureKind.BACKEND, str(frame.json()["error"]))
    return frame


def _gone() -> RequestError:
    return RequestError(
        FailureKind.UNAVAILABLE,
        "the worker of this model ended and is started again; try again in a moment",
        retry_after=1,
    )
