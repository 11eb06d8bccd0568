"""Frames between front and worker, there and back."""

from __future__ import annotations

import asyncio
import socket

import numpy as np
import pytest

from bertsmith.serve.frames import (
    HEADER,
    FrameError,
    FrameKind,
    WireFrame,
    pack_ids,
    pack_vectors,
    read_frame,
    receive_frame,
    unpack_ids,
    unpack_vectors,
)


def test_frames_go_both_ways_over_a_socket() -> None:
    ours, theirs = socket.socketpair()
    sent = [WireFrame(FrameKind.BEAT, 0), WireFrame(FrameKind.CALL, 7, b'{"a": 1}')]
    with ours, theirs:
        for frame in sent:
            theirs.sendall(frame.to_bytes())
        assert [receive_frame(ours) for _ in sent] == sent
        theirs.close()
        assert receive_frame(ours) is None


def test_frames_are_read_from_a_stream() -> None:
    async def read() -> WireFrame:
        reader = asyncio.StreamReader()
        reader.feed_data(WireFrame(FrameKind.PART, 3, b"[1]").to_bytes())
        return await read_frame(reader)

    assert asyncio.run(read()) == WireFrame(FrameKind.PART, 3, b"[1]")


@pytest.mark.parametrize("lengths", [[], [3], [1, 0, 4]])
def test_ids_and_options_come_back(lengths: list[int]) -> None:
    texts = [np.arange(size, dtype=np.int32) + size for size in lengths]
    found, options = unpack_ids(pack_ids(texts, {"normalize": True}))
    assert options == {"normalize": True}
    assert [one.tolist() for one in found] == [one.tolist() for one in texts]


def test_vectors_come_back_to_the_bit() -> None:
    vectors = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    assert (unpack_vectors(pack_vectors(vectors)) == vectors).all()


@pytest.mark.parametrize("payload", [b"\0" * 12, b"\1\0\0\0\0\0\0\0\0\0\0\0x"])
def test_payloads_that_do_not_add_up_are_refused(payload: bytes) -> None:
    good = pack_ids([np.arange(3, dtype=np.int32)], {})
    with pytest.raises((FrameError, ValueError)):
        unpack_ids(good[:-4] if payload == b"\0" * 12 else payload)


def test_a_header_that_is_no_frame_is_refused() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(HEADER.pack(200, 1, 5))
        with pytest.raises(FrameError, match="no frame"):
            receive_frame(ours)
