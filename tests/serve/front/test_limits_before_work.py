"""Limits are checked before work: bodies, heads, chunks and values that cost more than they say."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from raw_fuzz import GOOD, post
from service_process import ServiceProcess
from tiny_finetuning import tiny_folder

KEY = "a-key-of-the-tests-0123456789"
AUTH = f"authorization: Bearer {KEY}\r\n".encode()
JSON = b"content-type: application/json\r\n"
HEAD = b"POST /embed HTTP/1.1\r\nhost: a\r\n" + JSON + AUTH
MOST_GROWTH = 10_000_000  # bytes
TICKS = os.sysconf("SC_CLK_TCK")

pytestmark = pytest.mark.reliability


@pytest.fixture(scope="module")
def service(tmp_path_factory) -> Iterator[ServiceProcess]:
    folder = tiny_folder(tmp_path_factory.mktemp("before") / "model")
    one = ServiceProcess(f"tiny={folder}", key=KEY)
    yield one
    one.close()


@pytest.fixture
def client(service: ServiceProcess) -> Iterator[httpx.Client]:
    headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
    with httpx.Client(base_url=service.url, headers=headers, timeout=60) as one:
        yield one


def cpu(service: ServiceProcess) -> float:
    """Seconds of CPU time of the front."""
    fields = Path(f"/proc/{service.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def sent(port: int, *parts: bytes) -> tuple[int, int]:
    """The status of the answer, and how many bytes were taken before it."""
    taken = 0
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65_536)
        with contextlib.suppress(OSError):
            for part in parts:
                connection.sendall(part)
                taken += len(part)
        answer = b""
        with contextlib.suppress(OSError):
            while b"\r\n" not in answer and (part := connection.recv(4_096)):
                answer += part
    assert answer.startswith(b"HTTP/1.1 "), answer[:80]
    return int(answer.split()[1]), taken


def test_a_gigabyte_is_refused_by_its_length_and_when_it_comes_in_chunks(
    service: ServiceProcess,
) -> None:
    for _ in range(3):  # buffers are there before memory is measured
        sent(service.port, post(b"/embed", AUTH, GOOD))
    memory = service.resident()
    block = b"x" * 65_536
    declared = HEAD + b"content-length: 1000000000\r\n\r\n"
    status, taken = sent(service.port, declared, *[block] * 16_000)
    assert status == 413
    assert taken < 20_000_000  # the buffers of two sockets, and a second of patience
    chunk = b"10000\r\n" + block + b"\r\n"
    streamed = HEAD + b"transfer-encoding: chunked\r\n\r\n"
    status, taken = sent(service.port, streamed, *[chunk] * 16_000)
    assert status == 413
    assert taken < 20_000_000
    assert service.resident() - memory < MOST_GROWTH


def test_a_head_of_a_megabyte_is_refused(service: ServiceProcess) -> None:
    memory = service.resident()
    assert sent(service.port, HEAD, b"a: " + b"b" * 1_000_000 + b"\r\n\r\n")[0] == 431
    assert sent(service.port, HEAD, b"a: b\r\n" * 200_000 + b"\r\n")[0] == 431
    assert service.resident() - memory < MOST_GROWTH


def test_a_body_of_chunks_of_one_byte_costs_little(service: ServiceProcess) -> None:
    before = cpu(service)
    chunks = b"1\r\nx\r\n" * 500_000
    head = HEAD + b"transfer-encoding: chunked\r\n\r\n"
    assert sent(service.port, head, chunks, b"0\r\n\r\n")[0] == 400
    assert cpu(service) - before < 0.5


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (json.dumps({"inputs": ["a"] * 1_000_000}).encode(), 413),
        (json.dumps({"inputs": ["a"] * 300_000}).encode(), 413),
        (b'{"a":' * 100_000, 400),
        (b'{"inputs": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400),
        (b'{"inputs": %s}' % (b"9" * 5_000), 400),
        (b'{"inputs": NaN}', 400),
        (b'{"inputs": "a", "dimensions": 99999999999}', 422),
        (b'{"inputs": "a", "dimensions": 1e99}', 422),
        (b'{"inputs": [[%s]]}' % b",".join([b"1"] * 500_000), 413),
    ],
    ids=lambda one: f"{len(one):,} bytes" if isinstance(one, bytes) else None,
)
def test_values_beyond_the_limits_are_refused_at_once(
    service: ServiceProcess, client: httpx.Client, body: bytes, status: int
) -> None:
    spent = []
    for _ in range(3):
        before = cpu(service)
        assert client.post("/embed", content=body).status_code == status
        spent.append(cpu(service) - before)
    assert min(spent) <= 0.05


def test_a_huge_number_of_results_is_refused(client: httpx.Client) -> None:
    for path, body in (
        ("/fill", {"text": "a [MASK]", "top": 10**9}),
        ("/search", {"query": "a", "k": 10**9}),
        ("/generate", {"text": "a", "max_new": 10**9}),
    ):
        assert client.post(path, json=body).status_code == 422, path


def test_nobody_waits_for_the_long_text_of_another(
    service: ServiceProcess, client: httpx.Client
) -> None:
    long = {"inputs": "the bird went to the tree " * 70_000}  # 1.8 MB, 420,000 tokens
    spent = []

    def ask() -> None:
        with httpx.Client(base_url=service.url, headers=client.headers, timeout=60) as other:
            start = time.perf_counter()
            answer = other.post("/embed", json=long)
            assert answer.status_code == 200
            assert int(answer.headers["x-cut-tokens"]) > 400_000
            spent.append(time.perf_counter() - start)

    thread = threading.Thread(target=ask)
    thread.start()
    times = []
    while thread.is_alive():
        start = time.perf_counter()
        assert client.post("/embed", json={"inputs": "the bird"}).status_code == 200
        times.append(time.perf_counter() - start)
        time.sleep(0.01)
    thread.join()
    assert len(spent) == 1
    assert len(times) > 5
    assert max(times) < max(0.3, spent[0] / 3)


def test_lists_of_tokens_and_of_their_vectors_are_bounded(client: httpx.Client) -> None:
    long = "the bird went to the tree " * 20_000
    refused = client.post("/tokenize", json={"inputs": long})
    assert refused.status_code == 413
    assert "65,536" in refused.json()["error"]
    assert len(client.post("/tokenize", json={"inputs": "the bird " * 3_000}).json()[0]) == 6_002
    many = client.post("/v1/embeddings", json={"input": [[5] * 20_001], "model": "tiny"})
    assert many.status_code == 413
