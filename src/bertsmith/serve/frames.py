"""Frames between the front and the worker of a model: a header, then bytes; nothing is unpickled.

A frame is `kind` (one byte), `number` (of the request it belongs to) and a payload. Arrays are
little-endian, as on every machine this runs on.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

Ids = NDArray[np.int32]
Vectors = NDArray[np.float32]

HEADER = struct.Struct("<BII")
LARGEST = 1 << 30  # bytes of a payload


class FrameKind(IntEnum):
    """What a frame holds."""

    READY = 1  # worker: the model is loaded and a warm-up batch was right; JSON
    ROWS = 2  # front: token ids of texts; worker: their vectors
    CALL = 3  # front: an operation on JSON rows; worker: their results
    STREAM = 4  # front: an operation whose result comes in parts
    PART = 5  # worker: a part of it; an empty payload ends it
    FAILED = 6  # worker: {"error": ..., "kind": ...}
    CANCEL = 7  # front: nobody waits for this number any more
    BEAT = 8  # worker: alive
    STOP = 9  # front: finish and end


class FrameError(Exception):
    """Bytes between front and worker that are no frame; the worker is started again."""


@dataclass(frozen=True, slots=True)
class WireFrame:
    """One frame."""

    kind: FrameKind
    number: int
    payload: bytes = b""

    def to_bytes(self) -> bytes:
        """As it is sent."""
        return HEADER.pack(self.kind, self.number, len(self.payload)) + self.payload

    def json(self) -> Any:
        """The payload as JSON."""
        return orjson.loads(self.payload)


def parse_header(header: bytes | bytearray) -> tuple[FrameKind, int, int]:
    """FrameKind, number and size of the payload."""
    kind, number, size = HEADER.unpack(header)
    if size > LARGEST or kind not in FrameKind._value2member_map_:
        raise FrameError(f"no frame: kind {kind}, {size:,} bytes")
    return FrameKind(kind), number, size


async def read_frame(reader: asyncio.StreamReader) -> WireFrame:
    """The next frame; IncompleteReadError when the other side is gone."""
    kind, number, size = parse_header(await reader.readexactly(HEADER.size))
    return WireFrame(kind, number, await reader.readexactly(size) if size else b"")


def receive_frame(connection: socket.socket) -> WireFrame | None:
    """The next frame of a blocking socket, None when the other side is gone."""
    header = _exactly(connection, HEADER.size)
    if header is None:
        return None
    kind, number, size = parse_header(header)
    payload = _exactly(connection, size) if size else b""
    return None if payload is None else WireFrame(kind, number, bytes(payload))


def _exactly(connection: socket.socket, size: int) -> bytearray | None:
    buffer = bytearray(size)
    view = memoryview(buffer)
    got = 0
    while got < size:
        count = connection.recv_into(view[got:])
        if not count:
            return None
        got += count
    return buffer


def pack_ids(texts: Sequence[Ids], options: dict[str, Any]) -> bytes:
    """Token ids of B texts, and options of the operation: -> bytes."""
    lengths = np.array([len(text) for text in texts], dtype=np.int32)
    ids = np.concatenate([np.empty(0, np.int32), *texts]).astype(np.int32, copy=False)
    written = orjson.dumps(options)
    head = struct.pack("<III", len(written), len(texts), len(ids))
    return b"".join([head, written, lengths.tobytes(), ids.tobytes()])


def unpack_ids(payload: bytes) -> tuple[list[Ids], dict[str, Any]]:
    """What `pack_ids` wrote."""
    written, texts, tokens = struct.unpack_from("<III", payload)
    at = 12 + written
    if len(payload) != at + 4 * (texts + tokens):
        raise FrameError("the ids of a frame do not fill it")
    options = orjson.loads(payload[12:at])
    lengths = np.frombuffer(payload, np.int32, texts, at)
    ids = np.frombuffer(payload, np.int32, tokens, at + 4 * texts)
    if int(lengths.sum()) != tokens or (lengths < 0).any():
        raise FrameError("the lengths of a frame do not add up")
    return np.split(ids, np.cumsum(lengths)[:-1]) if texts else [], options


def pack_vectors(vectors: Vectors) -> bytes:
    """(B, D) -> bytes."""
    return struct.pack("<II", *vectors.shape) + np.ascontiguousarray(vectors, np.float32).tobytes()


def unpack_vectors(payload: bytes) -> Vectors:
    """What `pack_vectors` wrote: -> (B, D)."""
    texts, width = struct.unpack_from("<II", payload)
    if len(payload) != 8 + 4 * texts * width:
        raise FrameError("the vectors of a frame do not fill it")
    return np.frombuffer(payload, np.float32, texts * width, 8).reshape(texts, width)
