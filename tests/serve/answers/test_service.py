"""A running service: routes answer as the Python API does, workers that die come back."""

from __future__ import annotations

import base64
import os
import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numpy as np
import pytest
from running_service import KEY, RunningService

from bertsmith.folders.resolve import resolve
from bertsmith.runtime.loading import load
from bertsmith.serve.service import ROUTES

TEXTS = ["a short text", "今天天气很好", "another one, somewhat longer than the first"]


@pytest.fixture(scope="module")
def folder() -> Path:
    return Path(resolve("all-MiniLM-L6-v2"))


@pytest.fixture(scope="module")
def running(folder: Path) -> Iterator[RunningService]:
    one = RunningService({"minilm": folder})
    yield one
    one.close()


@pytest.fixture
def client(running: RunningService) -> Iterator[httpx.Client]:
    headers = {"authorization": f"Bearer {KEY}"}
    with httpx.Client(base_url=running.address, headers=headers, timeout=30) as one:
        yield one


def test_vectors_are_those_of_the_python_api(client: httpx.Client, folder: Path) -> None:
    with load(folder, precision="fp32") as model:
        wanted = model.encode(TEXTS, normalize=True)
        plain = model.encode(TEXTS)
    found = client.post("/embed", json={"inputs": TEXTS}).json()
    assert np.abs(np.array(found) - wanted).max() < 1e-5
    answer = client.post(
        "/v1/embeddings", json={"input": TEXTS, "model": "minilm", "encoding_format": "base64"}
    ).json()
    decoded = [np.frombuffer(base64.b64decode(one["embedding"]), "<f4") for one in answer["data"]]
    assert np.abs(np.array(decoded) - plain).max() < 1e-5
    assert answer["usage"]["prompt_tokens"] > 0


def test_each_of_many_requests_at_once_gets_its_own_answer(
    client: httpx.Client, folder: Path
) -> None:
    texts = [f"text number {number} " + "and more " * (number % 17) for number in range(120)]
    with load(folder, precision="fp32") as model:
        wanted = model.encode(texts, normalize=True)

    def ask(number: int) -> np.ndarray:
        return np.array(client.post("/embed", json={"inputs": texts[number]}).json()[0])

    with ThreadPoolExecutor(16) as threads:
        found = list(threads.map(ask, range(len(texts))))
    assert np.abs(np.array(found) - wanted).max() < 1e-5


def test_every_example_of_the_table_is_answered(
    client: httpx.Client, running: RunningService
) -> None:
    able = running.service.models["minilm"].abilities
    asked = 0
    for methods in ROUTES.values():
        for route in methods.values():
            for example in route.examples:
                body = {**example, **({"model": "minilm"} if "model" in example else {})}
                answer = client.request(route.method, route.path, json=body)
                wanted = 200 if route.ability in able else 404
                assert answer.status_code == wanted, (route.path, answer.text)
                asked += 1
    assert asked > 10


def test_every_route_needs_a_key_but_health_and_the_page(running: RunningService) -> None:
    open_paths = set()
    with httpx.Client(base_url=running.address) as stranger:
        for path, methods in ROUTES.items():
            for method, route in methods.items():
                answer = stranger.request(method, path.replace("{model}", "minilm"))
                if route.needs_key:
                    assert answer.status_code == 401, path
                else:
                    open_paths.add(path)
        for odd in ("/nothing", "//embed", "/embed/", "/%2e/embed", "/models/minilm/embed"):
            address = stranger.base_url.copy_with(raw_path=odd.encode())
            assert stranger.post(address).status_code == 401, odd
    assert open_paths == {"/", "/health/live"}


def test_faults_are_named_without_repeating_the_text(client: httpx.Client) -> None:
    cases = [
        ("/embed", {"inputs": []}, 400),
        ("/embed", {"inputs": ["secret " * 3, " "]}, 400),
        ("/embed", {"inputs": 7}, 422),
        ("/embed", {"inputs": "secret", "surprise": 1}, 422),
        ("/embed", {"inputs": ["secret"] * 33}, 413),
        ("/embed", {"inputs": "secret", "dimensions": 10_000}, 422),
        ("/embed", {"inputs": "secret", "prompt_name": "nobody"}, 422),
        ("/predict", {"inputs": "secret"}, 404),
        ("/v1/embeddings", {"input": "secret", "model": "nobody"}, 404),
        ("/embed", {"inputs": [[10**9]]}, 422),
    ]
    for path, body, status in cases:
        answer = client.post(path, json=body)
        assert answer.status_code == status, (path, body, answer.text)
        assert "secret" not in answer.text
        assert answer.json()["error"]


def test_a_text_that_is_too_long_is_cut_and_counted(client: httpx.Client) -> None:
    answer = client.post("/embed", json={"inputs": "word " * 3_000})
    assert answer.status_code == 200
    assert int(answer.headers["x-cut-tokens"]) > 1_000
    refused = client.post("/embed", json={"inputs": "word " * 3_000, "truncate": False})
    assert refused.status_code == 413


def test_a_worker_that_is_killed_or_stopped_comes_back(
    client: httpx.Client, running: RunningService
) -> None:
    supervisor = running.service.models["minilm"].supervisor
    for number in (signal.SIGKILL, signal.SIGSTOP):
        os.kill(supervisor.worker.process.pid, number)
        statuses = set()
        end = time.monotonic() + 60
        while time.monotonic() < end:
            status = client.post("/embed", json={"inputs": "again"}).status_code
            statuses.add(status)
            if status == 200 and 503 in statuses:
                break
            time.sleep(0.05)
        assert statuses == {200, 503}
        assert supervisor.is_alive
    assert supervisor.restarts >= 2


def test_the_log_has_no_text_and_no_key(client: httpx.Client, running: RunningService) -> None:
    client.post("/embed", json={"inputs": "a secret text"}, headers={"x-request-id": "mine-1"})
    end = time.monotonic() + 10
    while not any(one["id"] == "mine-1" for one in list(running.records)):
        assert time.monotonic() < end  # the line is written after the answer
        time.sleep(0.01)
    written = str(running.records)
    assert "secret" not in written
    assert KEY not in written
    metrics = client.get("/metrics").text
    assert 'te_request_count_total{route="/embed",status="200"}' in metrics
    assert "secret" not in metrics


def test_a_head_that_trickles_is_ended(running: RunningService) -> None:
    with socket.create_connection(("127.0.0.1", running.port)) as connection:
        start = time.monotonic()
        connection.sendall(b"POST /embed HTTP/1.1\r\n")
        connection.settimeout(10)
        answer = b""
        while part := connection.recv(1_000):
            answer += part
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert time.monotonic() - start < 5
