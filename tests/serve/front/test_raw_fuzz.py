"""Broken requests over raw sockets: no crash, no 5xx but 503, no hang, and nothing left open."""

from __future__ import annotations

import json
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from raw_fuzz import GOOD, cases, verdict
from service_process import ServiceProcess
from tiny_finetuning import tiny_folder

KEY = "a-key-of-the-tests-0123456789"
LONG = bool(os.environ.get("BERTSMITH_LONG"))
REQUESTS = 10_000 if LONG else 300
MOST_GROWTH = 30_000_000  # bytes

pytestmark = pytest.mark.reliability


@pytest.fixture(scope="module")
def service(tmp_path_factory) -> Iterator[ServiceProcess]:
    folder = tiny_folder(tmp_path_factory.mktemp("fuzz") / "model")
    one = ServiceProcess(f"tiny={folder}", "--head-seconds", "2", "--body-seconds", "2", key=KEY)
    yield one
    one.close()


def canary(service: ServiceProcess) -> int:
    headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
    return httpx.post(f"{service.url}/embed", content=GOOD, headers=headers).status_code


def settled(service: ServiceProcess, most: int) -> int:
    """Descriptors once the service has closed what was left to it."""
    end = time.monotonic() + 20
    while (found := service.descriptors()) > most and time.monotonic() < end:
        time.sleep(0.1)
    return found


def settled_memory(service: ServiceProcess, most: int) -> int:
    """Memory once the service has given back what it no longer uses: every 5 s."""
    end = time.monotonic() + 15
    while (found := service.resident()) >= most and time.monotonic() < end:
        time.sleep(0.5)
    return found


def test_broken_requests_break_nothing(service: ServiceProcess) -> None:
    assert canary(service) == 200
    descriptors = service.descriptors()
    for case in cases(1, 60, KEY):  # buffers of every size are there before memory is measured
        verdict(service.port, case)
    memory = service.resident()
    faults: Counter[tuple[str, str, str]] = Counter()
    for number, case in enumerate(cases(2, REQUESTS, KEY)):
        if (wrong := verdict(service.port, case)) is not None:
            faults[case.name, wrong, repr(case.data[:120])] += 1
        if number % 100 == 0:
            assert canary(service) == 200
    assert not faults
    assert canary(service) == 200
    assert settled(service, descriptors) <= descriptors
    assert settled_memory(service, memory + MOST_GROWTH) - memory < MOST_GROWTH
    assert "Traceback" not in service.stderr


class Naive(BaseHTTPRequestHandler):
    """What one writes in ten minutes."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        length = int(self.headers["content-length"])
        value = json.loads(self.rfile.read(length))
        body = json.dumps(len(value["inputs"])).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Nothing."""


class QuietServer(ThreadingHTTPServer):
    """Its tracebacks are counted, not printed."""

    crashes = 0

    def handle_error(self, *arguments: object) -> None:
        type(self).crashes += 1


def test_the_fuzzer_finds_the_faults_of_a_naive_server() -> None:
    with QuietServer(("127.0.0.1", 0), Naive) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_address[1]
        found = {
            wrong.split(":")[0]
            for case in cases(2, 120, None)
            if (wrong := verdict(port, case)) is not None
        }
        server.shutdown()
    assert QuietServer.crashes > 10
    assert found
