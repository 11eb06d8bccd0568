"""The load generator, and a service under more load than it can take."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from service_process import ServiceProcess
from tiny_finetuning import tiny_folder

from bertsmith.errors import ConfigError, ServiceError
from bertsmith.serve.clients.load import NO_ANSWER, LoadPlan, generate_load

KEY = "a-key-of-the-tests-0123456789"
LONG = bool(os.environ.get("BERTSMITH_LONG"))
MOST_GROWTH = 30_000_000  # bytes
SMALL = ("--batch-tokens", "64", "--queue-tokens", "64", "--text-tokens", "64")


@pytest.fixture(scope="module")
def service(tmp_path_factory) -> Iterator[ServiceProcess]:
    folder = tiny_folder(tmp_path_factory.mktemp("load") / "model")
    one = ServiceProcess(folder, *SMALL, key=KEY)
    yield one
    one.close()


def metrics(service: ServiceProcess, *names: str) -> list[float]:
    """The sums of metrics over their labels, of one moment."""
    answer = httpx.get(f"{service.url}/metrics", headers={"authorization": f"Bearer {KEY}"})
    lines = answer.text.splitlines()
    return [
        sum(float(line.split()[-1]) for line in lines if line.startswith(name)) for name in names
    ]


def test_the_closed_loop_sends_as_many_requests_as_planned(service: ServiceProcess) -> None:
    name = 'te_request_count_total{route="/v1/embeddings"'
    (before,) = metrics(service, name)
    report = generate_load(LoadPlan(url=service.url, key=KEY, clients=1, requests=30))
    assert report.statuses == {"200": 30}
    found = report.to_json()
    assert found["latency_ms"]["p50"] <= found["latency_ms"]["p99"]
    assert 0 < found["own_cpu_share"] <= 1.5
    assert metrics(service, name) == [before + 30]


def test_the_open_loop_keeps_its_rate(service: ServiceProcess) -> None:
    plan = LoadPlan(url=service.url, key=KEY, rate=40, seconds=1.5)
    report = generate_load(plan)
    assert 30 <= sum(report.statuses.values()) <= 100
    assert set(report.statuses) <= {"200", "429"}


def test_more_than_the_service_can_do_is_refused_fast_and_nothing_else_fails(
    service: ServiceProcess,
) -> None:
    seconds, clients = (60.0, 64) if LONG else (2.0, 32)
    plan = LoadPlan(
        url=service.url, key=KEY, clients=clients, seconds=seconds, texts_per_request=16
    )
    name = 'te_request_count_total{route="/v1/embeddings"'
    (before,) = metrics(service, name)
    memory = service.resident()
    report = generate_load(plan)
    assert set(report.statuses) == {"200", "429"}
    assert metrics(service, name) == [before + sum(report.statuses.values())]  # all are answered
    assert service.resident() - memory < MOST_GROWTH
    assert report.statuses["429"] > report.statuses["200"] / 10
    refused, answered = (report.to_json()[f"{name}_ms"] for name in ("refusal", "latency"))
    assert refused["p50"] < 20 or refused["p50"] < answered["p50"] / 2, "refused without waiting"
    # Whole again at once: the queue does not stay full.
    again = generate_load(LoadPlan(url=service.url, key=KEY, clients=1, requests=5))
    assert again.statuses == {"200": 5}
    requests, timed = metrics(service, "te_request_count_total", "te_request_duration_count")
    assert requests == timed >= sum(report.statuses.values())


def test_a_refusal_names_an_honest_time(service: ServiceProcess) -> None:
    headers = {"authorization": f"Bearer {KEY}"}
    body = {"inputs": ["the bird went to the tree " * 8] * 32}
    waits = []

    def ask(_: int) -> int:
        answer = httpx.post(f"{service.url}/embed", json=body, headers=headers, timeout=60)
        if answer.status_code == 429:
            waits.append(int(answer.headers["retry-after"]))
        return answer.status_code

    start = time.monotonic()
    with ThreadPoolExecutor(16) as threads:
        statuses = set(threads.map(ask, range(64)))
    assert statuses == {200, 429}
    # The queue holds far less than a second of work, and Retry-After is in whole seconds.
    assert set(waits) <= {1, 2}, waits
    assert time.monotonic() - start < 60


def test_nothing_listens_at_a_wrong_port() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    start = time.monotonic()
    with pytest.raises(ServiceError, match="cannot be reached"):
        generate_load(LoadPlan(url=url))
    assert time.monotonic() - start < 5


def test_another_machine_is_loaded_only_if_that_is_allowed() -> None:
    with pytest.raises(ConfigError, match="allow-remote"):
        generate_load(LoadPlan(url="http://192.0.2.1:8080"))


def test_a_service_that_goes_away_is_counted(tmp_path) -> None:
    service = ServiceProcess(tiny_folder(tmp_path / "model"))
    report = generate_load(LoadPlan(url=service.url, clients=1, requests=3))
    assert report.statuses == {"200": 3}
    assert service.end() == 0
    with pytest.raises(ServiceError):
        generate_load(LoadPlan(url=service.url))
    assert NO_ANSWER not in report.statuses
