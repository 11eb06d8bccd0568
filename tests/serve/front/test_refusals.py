"""Requests that are refused before they are one: answered in the form of their route, logged."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from running_service import RunningService
from tiny_finetuning import tiny_folder

from bertsmith.serve.limits import Limits
from bertsmith.serve.service import ROUTES


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    folder = tiny_folder(tmp_path_factory.mktemp("refusals") / "model")
    limits = Limits(
        head_seconds=1.0, body_seconds=5.0, connections=20, body_bytes=2_000, total_bytes=4_000
    )
    one = RunningService({"tiny": Path(folder)}, keys=(), limits=limits)
    yield one
    one.close()


def answer(port: int, data: bytes) -> tuple[int, dict]:
    """Status and body of what comes back until the connection ends."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(data)
        found = b""
        while part := connection.recv(1 << 16):
            found += part
    head, _, body = found.partition(b"\r\n\r\n")
    assert b"content-type: application/json" in head.lower()
    assert b"connection: close" in head.lower()
    return int(head.split()[1]), json.loads(body)


BAD = {
    "a field without a colon": (b"no colon\r\n\r\n", 400),
    "a head that is too large": (b"x: " + b"y" * 20_000 + b"\r\n\r\n", 431),
    "a head that is too late": (b"x: y\r\n", 408),
    "two lengths": (b"content-length: 1\r\ncontent-length: 2\r\n\r\n", 400),
    "no length": (b"content-length: x\r\n\r\n", 400),
}


@pytest.mark.parametrize("fault", BAD)
def test_the_answer_has_the_form_of_the_route_and_is_counted(
    running: RunningService, fault: str
) -> None:
    lines, wanted = BAD[fault]
    paths = {path: next(iter(methods.values())) for path, methods in ROUTES.items()}
    chosen = ["/embed", "/v1/embeddings", "/v1/rerank", "/generate"]
    for path in chosen if wanted == 408 else paths:
        line = f"POST {path.replace('{model}', 'tiny')}?a=b HTTP/1.1\r\nhost: localhost\r\n"
        status, body = answer(running.port, line.encode() + lines)
        assert status == wanted
        if paths[path].dialect == "openai":
            assert set(body["error"]) == {"message", "type", "param", "code"}
        else:
            assert isinstance(body["error"], str)
            assert "error_type" in body
        end = time.monotonic() + 5
        while running.records[-1]["route"] != path and time.monotonic() < end:
            time.sleep(0.01)
        assert running.records[-1]["status"] == wanted
        metrics, _ = running.service.metrics_text()
        assert f'te_request_count_total{{route="{path}",status="{wanted}"}}'.encode() in metrics


def test_what_is_no_http_is_counted_without_a_route(running: RunningService) -> None:
    status, body = answer(running.port, b"\x16\x03\x01\x02\x00\x01\x00 hello\r\n\r\n")
    assert (status, body["error_type"]) == (400, "Validation")
    assert running.records[-1]["route"] == "unknown"
    unknown, body = answer(
        running.port, b"GET /v1/none HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
    )
    assert unknown == 404
    assert body["error"]["code"] == 404


def test_a_body_that_is_not_what_its_chunks_say_ends_the_request(running: RunningService) -> None:
    head = b"POST /embed HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    status, _ = answer(running.port, head + b"transfer-encoding: chunked\r\n\r\nzz\r\n")
    assert status == 400


def is_live(connection: socket.socket) -> bool:
    """Whether a request over a connection is answered."""
    found = b""
    with contextlib.suppress(OSError):
        connection.sendall(b"GET /health/live HTTP/1.1\r\nhost: localhost\r\n\r\n")
        while not found.endswith(b"}") and (part := connection.recv(1 << 16)):
            found += part
    return found.startswith(b"HTTP/1.1 200")


def test_of_too_many_connections_one_of_the_client_with_most_is_closed(
    running: RunningService,
) -> None:
    before = len(running.records)
    greedy = []
    try:
        for _ in range(19):
            one = socket.create_connection(("127.0.0.1", running.port), timeout=20)
            assert is_live(one)
            greedy.append(one)
        for _ in range(5):  # another client gets in, and keeps what it has
            with socket.create_connection(
                ("127.0.0.1", running.port), timeout=20, source_address=("127.0.0.2", 0)
            ) as small:
                for _ in range(3):
                    assert is_live(small)
        closed = 0
        for _ in range(5):
            one = socket.create_connection(("127.0.0.1", running.port), timeout=20)
            greedy.append(one)
            closed += not is_live(one)
        assert closed
        refused = [one for one in running.records[before:] if one["status"] == 503]
        assert refused
    finally:
        for one in greedy:
            one.close()


def test_the_bodies_of_all_requests_have_a_total_that_one_client_cannot_take(
    running: RunningService,
) -> None:
    """A client alone may hold half of it: the rest is there for whoever comes next."""

    def head(size: int) -> bytes:
        return (
            b"POST /embed HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            b"connection: close\r\ncontent-length: %d\r\n\r\n" % size
        )

    body = json.dumps({"inputs": "the bird" + " " * 900}).encode()
    with socket.create_connection(("127.0.0.1", running.port), timeout=20) as first:
        first.sendall(head(1_500) + b" " * 1_400)
        end = time.monotonic() + 5
        while running.service.bodies.held < 1_400 and time.monotonic() < end:
            time.sleep(0.01)
        status, refused = answer(running.port, head(len(body)) + body)
        assert (status, refused["error_type"]) == (429, "Overloaded")
        other = ("127.0.0.2", 0)
        with socket.create_connection(
            ("127.0.0.1", running.port), timeout=20, source_address=other
        ) as small:
            small.sendall(head(len(body)) + body)
            assert small.recv(1 << 16).startswith(b"HTTP/1.1 200")
        first.sendall(b'{"inputs": "the bird"}'.ljust(100))
        assert first.recv(1 << 16).startswith(b"HTTP/1.1 200")
    end = time.monotonic() + 5
    while running.service.bodies.held and time.monotonic() < end:
        time.sleep(0.01)
    assert running.service.bodies.held == 0
