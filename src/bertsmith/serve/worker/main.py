"""The main function of a worker: load the model, then answer frames until the front is gone."""

from __future__ import annotations

import os
import queue
import signal
import socket
import sys
import threading
import time
import traceback
from itertools import count
from pathlib import Path
from typing import Any

import orjson

from bertsmith.errors import BertsmithError
from bertsmith.serve.failures import without_paths
from bertsmith.serve.frames import (
    FrameKind,
    WireFrame,
    pack_vectors,
    receive_frame,
    unpack_ids,
)
from bertsmith.serve.memory import give_back
from bertsmith.serve.worker.operations import Operations

BEAT_SECONDS = 0.5
BEATS_TO_TRIM = 10  # after so many, memory that batches have left is given back
STREAMS = 4  # results in parts that are computed at once


class Answering:
    """Answers the frames of one connection, batches one after another, streams next to them."""

    def __init__(self, connection: socket.socket, operations: Operations) -> None:
        self._connection = connection
        self._operations = operations
        self._frames: queue.Queue[WireFrame | None] = queue.Queue()
        self._sending = threading.Lock()
        self._cancelled: set[int] = set()
        self._slots = threading.Semaphore(STREAMS)
        self._worked = False  # since memory was given back

    def run(self) -> None:
        """Until the front ends the connection or asks to stop."""
        for target in (self._receive, self._beat):
            threading.Thread(target=target, daemon=True).start()
        while (frame := self._frames.get()) is not None:
            if frame.kind is FrameKind.STOP:
                return
            if frame.kind is FrameKind.STREAM:
                threading.Thread(target=self._stream, args=(frame,), daemon=True).start()
            elif frame.number not in self._cancelled:
                self._answer(frame)
            self._cancelled.discard(frame.number)

    def send(self, frame: WireFrame) -> None:
        """Send a frame; several threads do."""
        with self._sending:
            self._connection.sendall(frame.to_bytes())

    def _receive(self) -> None:
        while True:
            frame = receive_frame(self._connection)
            if frame is not None and frame.kind is FrameKind.CANCEL:
                self._cancelled.add(frame.number)
                continue
            self._frames.put(frame)
            if frame is None:
                return

    def _beat(self) -> None:
        for number in count(1):
            time.sleep(BEAT_SECONDS)
            if self._worked and number % BEATS_TO_TRIM == 0:
                self._worked = False
                give_back()
            try:
                self.send(WireFrame(FrameKind.BEAT, 0))
            except OSError:
                os._exit(0)  # the front is gone

    def _answer(self, frame: WireFrame) -> None:
        self._worked = True
        try:
            if frame.kind is FrameKind.ROWS:
                texts, options = unpack_ids(frame.payload)
                payload = pack_vectors(self._operations.rows(texts, options))
            else:
                call = frame.json()
                payload = orjson.dumps(self._operations.call(call["operation"], call["rows"]))
        except Exception as error:  # a fault of one request must not end the worker
            self.send(_failed(frame.number, error, paths=False))
            return
        self.send(WireFrame(frame.kind, frame.number, payload))

    def _stream(self, frame: WireFrame) -> None:
        with self._slots:
            self._worked = True
            call = frame.json()
            try:
                for part in self._operations.stream(call["operation"], call["row"]):
                    if frame.number in self._cancelled:
                        break
                    self.send(WireFrame(FrameKind.PART, frame.number, orjson.dumps(part)))
                self.send(WireFrame(FrameKind.PART, frame.number))
            except Exception as error:
                self.send(_failed(frame.number, error, paths=False))


def _failed(number: int, error: Exception, *, paths: bool = True) -> WireFrame:
    """What is known of a failure; messages of faults that nobody foresaw could hold a text.

    Paths are for who starts the service, not for its clients.
    """
    known = isinstance(error, BertsmithError)
    message = str(error) if known else f"the model failed with {type(error).__name__}"
    message = message if paths else without_paths(message)
    record = {"error": message, "kind": type(error).__name__}
    return WireFrame(FrameKind.FAILED, number, orjson.dumps(record))


def _report(error: BaseException | None, number: int = 70) -> None:
    """What ended the worker, without its message or traceback: those could hold a text."""
    frames = traceback.extract_tb(error.__traceback__) if error is not None else []
    place = f"{frames[-1].name}, line {frames[-1].lineno}" if frames else "an unknown place"
    os.write(2, f"a worker failed with {type(error).__name__} in {place}\n".encode())
    os._exit(number)


def main() -> None:
    """`python -m bertsmith.serve.worker.main DESCRIPTOR`: the socket that the front opened.

    What to load comes through the socket, not as arguments: `ps` shows those to everybody.
    """
    # Ctrl-C in the terminal of the front reaches its whole group; the front says when to stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.excepthook = lambda kind, error, trace: _report(error)
    threading.excepthook = lambda caught: _report(caught.exc_value)
    connection = socket.socket(fileno=int(sys.argv[1]))
    first = receive_frame(connection)
    if first is None:
        return
    settings: dict[str, Any] = first.json()
    try:
        operations = Operations(
            Path(settings["folder"]),
            precision=settings["precision"],
            threads=settings["threads"],
            index=None if settings["index"] is None else Path(settings["index"]),
        )
        description = operations.describe()
    except BertsmithError as error:
        connection.sendall(_failed(0, error).to_bytes())
        raise SystemExit(error.exit_code) from None
    connection.sendall(WireFrame(FrameKind.READY, 0, orjson.dumps(description)).to_bytes())
    Answering(connection, operations).run()
    operations.close()


if __name__ == "__main__":
    main()
