"""Requests that are sent before the answers to earlier ones: in order, one at a time, bounded."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from running_service import KEY, RunningService
from service_process import ServiceProcess
from tiny_finetuning import tiny_folder

from bertsmith.serve.http.protocol import Ahead
from bertsmith.serve.service import ROUTES

HEAD = f"host: a\r\nauthorization: Bearer {KEY}\r\n"
LIVE = b"GET /health/live HTTP/1.1\r\nhost: localhost\r\n\r\n"
STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")
NUMBER = re.compile(rb"x-request-id: n(\d+)\r\n")
AHEAD = 12


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_folder(tmp_path_factory.mktemp("pipelining") / "model")


@pytest.fixture(scope="module")
def running(folder: str) -> Iterator[RunningService]:
    one = RunningService({"tiny": Path(folder)})
    yield one
    one.close()


def written(method: str, path: str, number: int, body: bytes = b"", *, last: bool = False) -> bytes:
    lines = f"{method} {path} HTTP/1.1\r\n{HEAD}x-request-id: n{number}\r\n"
    lines += "connection: close\r\n" if last else ""
    if body:
        lines += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
    return f"{lines}\r\n".encode() + body


def answers(port: int, *parts: bytes) -> bytes:
    """All that comes back until the service closes the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        for part in parts:
            connection.sendall(part)
        found = b""
        while part := connection.recv(1 << 16):
            found += part
    return found


def routes() -> list[tuple[str, str, bytes]]:
    found = []
    for path, methods in ROUTES.items():
        for method, route in methods.items():
            body = json.dumps(route.examples[0]).encode() if route.examples else b""
            found.append((method, path.replace("{model}", "tiny"), body))
    return found


@pytest.mark.parametrize(("method", "path", "body"), routes(), ids=lambda one: str(one)[:30])
def test_every_route_answers_what_was_sent_ahead_in_its_order(
    running: RunningService, method: str, path: str, body: bytes
) -> None:
    alone = STATUS.findall(answers(running.port, written(method, path, 0, body, last=True)))
    sent = [written(method, path, n, body, last=n == AHEAD - 1) for n in range(AHEAD)]
    found = answers(running.port, b"".join(sent))
    assert [int(one) for one in NUMBER.findall(found)] == list(range(AHEAD))
    assert STATUS.findall(found) == alone * AHEAD


def test_requests_are_told_apart_however_their_bytes_arrive(running: RunningService) -> None:
    body = b'{"inputs": "the\\n bird"}\n\n'
    pieces = b'5\r\n{"inp\r\n9\r\nuts": "a"\r\n1\r\n}\r\n0\r\ntrailer: x\r\n\r\n'
    head = written("POST", "/tokenize", 1)[:-2]
    chunked = b"content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    whole = (
        b"\r\n\r\n"
        + written("POST", "/tokenize", 0, body)
        + head
        + chunked
        + pieces
        + written("POST", "/nowhere", 2, b"x" * 100)
        + written("GET", "/health/live", 3, last=True)
    )
    wanted = [b"200", b"200", b"404", b"200"]
    for at in range(1, len(whole), 7):
        found = answers(running.port, whole[:at], whole[at:])
        assert STATUS.findall(found) == wanted, at
    with socket.create_connection(("127.0.0.1", running.port), timeout=30) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(len(whole)):
            connection.sendall(whole[at : at + 1])
        found = b""
        while part := connection.recv(1 << 16):
            found += part
    assert STATUS.findall(found) == wanted
    assert [int(one) for one in NUMBER.findall(found)] == [0, 1, 2, 3]


def test_endless_pipelines_take_no_memory_and_leave_others_their_turn(folder: str) -> None:
    service = ServiceProcess(f"tiny={folder}", "--no-log")
    ended = threading.Event()
    sent = [0] * 8

    def flood(number: int) -> None:
        with socket.create_connection(("127.0.0.1", service.port)) as connection:
            connection.settimeout(0.1)
            block, at = LIVE * 2_000, 0
            while not ended.is_set():
                with contextlib.suppress(TimeoutError):
                    size = connection.send(block[at:])
                    sent[number] += size
                    at = (at + size) % len(block)
                    connection.recv(1 << 16)

    def ask() -> float:
        start = time.monotonic()
        assert httpx.get(f"{service.url}/models").status_code == 200
        return time.monotonic() - start

    ask()
    memory = service.resident()
    began = time.monotonic()
    threads = [threading.Thread(target=flood, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    try:
        times = sorted(ask() for _ in range(40))
        grown = service.resident() - memory
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    seconds = time.monotonic() - began
    found = httpx.get(f"{service.url}/metrics").text
    name = 'te_request_count_total{route="/health/live",status="200"} '
    answered = float(found.partition(name)[2].partition("\n")[0])
    service.close()
    assert min(sent) > 100_000  # before, each connection could send without end
    assert grown < 20_000_000
    assert times[len(times) // 2] < 0.5
    # Two milliseconds each, however many connections there are.
    assert 20 < answered < 600 * seconds + 100


def test_what_all_connections_send_ahead_has_a_total() -> None:
    ahead = Ahead(100)
    assert ahead.take(60)
    assert not ahead.take(60)
    ahead.give(60)
    assert ahead.take(100)
    first, second = ahead.turn(5.0), ahead.turn(5.0)
    assert first == 5.0
    assert second > first


def test_a_connection_beyond_the_total_ends_after_its_answer(running: RunningService) -> None:
    gate = next(iter_gates(running))
    limit, gate.limit = gate.limit, 10
    try:
        found = answers(running.port, LIVE * 5)
    finally:
        gate.limit = limit
    assert STATUS.findall(found) == [b"200"]
    assert gate.held == 0


def iter_gates(running: RunningService) -> Iterator[Ahead]:
    with socket.create_connection(("127.0.0.1", running.port)):
        while not running.server.server_state.connections:
            time.sleep(0.01)
        for one in list(running.server.server_state.connections):
            yield one.gate.ahead
