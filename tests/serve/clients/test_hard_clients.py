"""Clients that are slow, greedy or gone; signals under load; what logs and `ps` show."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import httpx
import pytest
from raw_fuzz import post
from service_process import ServiceProcess
from tiny_finetuning import tiny_folder, tiny_writer

KEY = "a-key-of-the-tests-0123456789"
OTHER = "another-key-of-the-tests-0123456"
SECRET = "thesecretwordofthetests"
LONG = bool(os.environ.get("BERTSMITH_LONG"))
AUTH = f"authorization: Bearer {KEY}\r\n".encode()
LONG_TEXTS = ["the bird went to the tree " * 12] * 32

pytestmark = pytest.mark.reliability


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> tuple[str, str]:
    place = tmp_path_factory.mktemp("hard")
    return f"tiny={tiny_folder(place / 'model')}", f"writer={tiny_writer(place / 'writer')}"


@pytest.fixture(scope="module")
def service(folders: tuple[str, str], tmp_path_factory) -> Iterator[ServiceProcess]:
    keys = tmp_path_factory.mktemp("keys") / "keys.txt"
    keys.write_text(f"{KEY}\n{OTHER}\n")
    times = ("--head-seconds", "2", "--body-seconds", "2", "--keys", str(keys))
    one = ServiceProcess(*folders, *times)
    yield one
    one.close()


@pytest.fixture
def client(service: ServiceProcess) -> Iterator[httpx.Client]:
    with caller(service, KEY) as one:
        yield one


def caller(service: ServiceProcess, key: str) -> httpx.Client:
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    return httpx.Client(base_url=service.url, headers=headers, timeout=30)


def times_of(client: httpx.Client, count: int = 30) -> list[float]:
    found = []
    for _ in range(count):
        start = time.perf_counter()
        assert client.post("/embed", json={"inputs": "the bird"}).status_code == 200
        found.append(time.perf_counter() - start)
    return sorted(found)


def closes_within(connection: socket.socket, seconds: float) -> bool:
    connection.settimeout(seconds)
    try:
        while connection.recv(4_096):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


def test_connections_that_trickle_are_ended_while_others_are_answered(
    service: ServiceProcess, client: httpx.Client
) -> None:
    kind = b"content-type: application/json\r\n"
    head = b"POST /embed HTTP/1.1\r\nhost: a\r\n" + kind + AUTH
    starts = [b"", head, head + b"content-length: 100\r\n\r\n{"]
    count = 200 if LONG else 60
    descriptors = service.descriptors()
    with contextlib.ExitStack() as stack:
        slow = []
        for number in range(count):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", service.port)))
            one.sendall(starts[number % 3])
            slow.append(one)
        start = time.monotonic()
        while time.monotonic() - start < 1.5:  # a byte at a time must not prolong the limit
            for one in slow:
                with contextlib.suppress(OSError):
                    one.sendall(b"x")
            times_of(client, 5)
            time.sleep(0.2)
        assert all(closes_within(one, 5.0) for one in slow)
    end = time.monotonic() + 10
    while service.descriptors() > descriptors + 1 and time.monotonic() < end:
        time.sleep(0.05)
    assert service.descriptors() <= descriptors + 1


def test_work_of_clients_that_left_is_skipped(
    service: ServiceProcess, client: httpx.Client
) -> None:
    body = json.dumps({"inputs": LONG_TEXTS}).encode()
    for _ in range(20):  # buffers are there before memory is measured
        client.post("/embed", content=body)
    descriptors, memory = service.descriptors(), service.resident()
    count = 2_000 if LONG else 100
    for _ in range(count):
        with socket.create_connection(("127.0.0.1", service.port)) as one:
            one.sendall(post(b"/embed", AUTH, body))
    start = time.monotonic()
    assert client.post("/embed", json={"inputs": "the bird"}).status_code == 200
    assert time.monotonic() - start < 10
    end = time.monotonic() + 20
    while service.descriptors() > descriptors + 5 and time.monotonic() < end:
        time.sleep(0.05)
    assert service.descriptors() <= descriptors + 5
    assert service.resident() - memory < 5_000_000
    text = client.get("/metrics").text
    left = [line for line in text.splitlines() if 'route="/embed",status="499"' in line]
    assert left
    assert 'te_queue_size{model="tiny"} 0.0' in text


def test_a_greedy_client_does_not_starve_another(service: ServiceProcess) -> None:
    ended = threading.Event()

    def greedy() -> None:
        with caller(service, OTHER) as one:
            while not ended.is_set():
                assert one.post("/embed", json={"inputs": LONG_TEXTS}).status_code in (200, 429)

    with caller(service, KEY) as small:
        alone = times_of(small)
        threads = [threading.Thread(target=greedy) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            together = times_of(small)
        finally:
            ended.set()
            for thread in threads:
                thread.join()
    # A batch of the greedy client takes some milliseconds; a busy machine makes both slower.
    batch = 2 * max(alone)
    assert together[int(0.95 * len(together))] < 3 * alone[int(0.95 * len(alone))] + batch + 0.25


def test_streams_end_with_an_event_and_those_of_clients_that_left_end_too(
    client: httpx.Client, service: ServiceProcess
) -> None:
    body = {"text": "the bird", "stream": True, "max_new": 8}
    with client.stream("POST", "/generate", json=body) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/event-stream"
        lines = [line for line in answer.iter_lines() if line]
    assert lines
    assert all(line.startswith("data: ") for line in lines)
    early = client.post("/generate", json={**body, "temperature": -1.0, "sample": True})
    assert early.status_code >= 400
    tight = {"x-timeout": "0.0001"}
    late = client.post("/generate", json={**body, "max_new": 50}, headers=tight)
    assert late.status_code == 503 or '"error"' in late.text
    for _ in range(20):  # more than are streamed at once, all left alone
        with socket.create_connection(("127.0.0.1", service.port)) as one:
            one.sendall(post(b"/generate", AUTH, json.dumps({**body, "max_new": 50}).encode()))
    end = time.monotonic() + 20
    while (again := client.post("/generate", json=body).status_code) != 200:
        assert again == 429
        assert time.monotonic() < end
        time.sleep(0.1)


def test_head_requests_have_no_body(client: httpx.Client) -> None:
    answer = client.head("/health/live")
    assert (answer.status_code, answer.content) == (200, b"")
    assert client.head("/embed").status_code == 405


def test_waiting_and_computing_are_told_apart(client: httpx.Client) -> None:
    headers = client.post("/embed", json={"inputs": "the bird"}).headers
    assert {"x-queue-time", "x-inference-time", "x-total-time"} <= set(headers)
    info = client.get("/info").json()
    assert info["model_type"] == {"embedding": {"pooling": "mean"}}
    assert info["model_dtype"] == "float32"
    assert info["truncatable"] is None  # a folder says nothing of first columns
    cut = client.post("/embed", json={"inputs": "the bird", "dimensions": 4})
    assert cut.headers["x-truncatable"] == "unknown"


def test_logs_answers_metrics_and_ps_have_no_text_key_path_or_traceback(
    client: httpx.Client, service: ServiceProcess, folders: tuple[str, str]
) -> None:
    texts = ""
    for path, body in (
        ("/embed", {"inputs": SECRET}),
        ("/embed", {"inputs": SECRET, SECRET: 1}),
        ("/embed", {"inputs": SECRET, "prompt_name": SECRET}),
        ("/fill", {"text": SECRET}),
        ("/generate", {"text": "the bird", "model": "tiny"}),
        ("/generate", {"text": "the bird", "model": "writer", "answers": 3}),
        ("/attention", {"text": "the bird", "layer": 99}),
        ("/v1/embeddings", {"input": SECRET, "model": SECRET}),
        (f"/{SECRET}%0d%0a%1b[31m", {}),
        (f"/models/{SECRET}/embed", {"inputs": SECRET}),
    ):
        answer = client.post(path, json=body, headers={"x-request-id": f"{SECRET} \x1b[31m"})
        if answer.status_code != 200:
            texts += answer.text + str(answer.headers)
    texts += client.get("/metrics").text + client.get("/models").text
    texts += service.stdout + service.stderr
    texts += subprocess.run(["ps", "-ef"], capture_output=True, text=True, check=True).stdout
    folder = folders[0].partition("=")[2]
    for hidden in (KEY, OTHER, "Traceback", "\x1b"):
        assert hidden not in texts
    assert SECRET not in texts
    assert folder not in service.stdout + texts
    for line in service.stdout.splitlines():
        assert json.loads(line)["route"]


def test_metrics_add_up(client: httpx.Client) -> None:
    for path in ("/embed", "/nowhere", "/elsewhere/x"):
        client.post(path, json={"inputs": "the bird"})
    lines = client.get("/metrics").text.splitlines()

    def total(name: str) -> float:
        return sum(float(line.split()[-1]) for line in lines if line.startswith(name))

    assert total("te_request_count_total") == total("te_request_duration_count") > 0
    paths = {line.split('"')[1] for line in lines if line.startswith("te_request_count_total")}
    assert "unknown" in paths
    assert len(paths) < 40


@pytest.mark.slow
@pytest.mark.parametrize("turn", range(20 if LONG else 2))
def test_sigterm_under_load_answers_everything_that_was_accepted(
    folders: tuple[str, str], turn: int
) -> None:
    service = ServiceProcess(folders[0])
    statuses: list[int] = []
    lost: list[str] = []
    ended = threading.Event()

    def load() -> None:
        while not ended.is_set():
            connection = HTTPConnection("127.0.0.1", service.port, timeout=30)
            try:
                connection.connect()
            except OSError:
                return  # not accepted: the service is gone
            try:
                body = json.dumps({"inputs": LONG_TEXTS[:8]})
                connection.request("POST", "/embed", body, {"content-type": "application/json"})
                statuses.append(connection.getresponse().status)
                if statuses[-1] == 503:
                    return  # it says that it ends; what comes later may not be accepted
            except (OSError, HTTPException) as error:
                lost.append(repr(error))
            finally:
                connection.close()

    with ThreadPoolExecutor(8) as threads:
        running = [threads.submit(load) for _ in range(8)]
        time.sleep(0.5 + 0.05 * turn)
        service.process.send_signal(signal.SIGTERM)
        time.sleep(0.1)
        live = ready = 0
        with contextlib.suppress(httpx.HTTPError):
            ready = httpx.get(f"{service.url}/health/ready").status_code
            live = httpx.get(f"{service.url}/health/live").status_code
        code = service.process.wait(60)
        ended.set()
        for one in running:
            one.result()
    stderr = service.stderr
    service.close()
    assert code == 0, stderr
    assert not lost
    assert {200} <= set(statuses) <= {200, 503}
    assert (ready, live) in ((503, 200), (0, 0), (503, 0))


def test_a_second_signal_ends_the_service_at_once(folders: tuple[str, str]) -> None:
    service = ServiceProcess(folders[0])
    with socket.create_connection(("127.0.0.1", service.port)) as one:
        one.sendall(post(b"/embed", b"", b"{" + b" " * 49, host=b"localhost")[:-49])
        time.sleep(0.2)
        service.process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        start = time.monotonic()
        service.end()
        assert time.monotonic() - start < 5
    workers = [
        path for path in Path("/proc").glob("[0-9]*/cmdline") if _is_worker_of(path, service)
    ]
    assert not workers


def _is_worker_of(path: Path, service: ServiceProcess) -> bool:
    try:
        parent = (path.parent / "stat").read_text().rpartition(")")[2].split()[1]
    except OSError:
        return False
    return int(parent) == service.process.pid
