"""Health and workers: ready means that a model runs; one that dies does not take others along."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
import torch
from running_service import KEY, RunningService
from safetensors.torch import load_file, save_file
from tiny_finetuning import tiny_folder

from bertsmith.serve.supervisor import MOST_DEATHS

pytestmark = pytest.mark.reliability


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return Path(tiny_folder(tmp_path_factory.mktemp("health") / "model"))


@pytest.fixture
def running(folder: Path) -> Iterator[RunningService]:
    one = RunningService({"first": folder, "second": folder})
    yield one
    one.close()


@pytest.fixture
def client(running: RunningService) -> Iterator[httpx.Client]:
    headers = {"authorization": f"Bearer {KEY}"}
    with httpx.Client(base_url=running.address, headers=headers, timeout=30) as one:
        yield one


def ask(client: httpx.Client, model: str) -> int:
    return client.post(f"/models/{model}/embed", json={"inputs": "the bird"}).status_code


def until(condition: Callable[[], bool], seconds: float = 60.0) -> float:
    """How long it took until the condition held."""
    start = time.monotonic()
    while not condition():
        assert time.monotonic() - start < seconds
        time.sleep(0.01)
    return time.monotonic() - start


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_a_dead_worker_is_not_ready_and_the_other_model_answers(
    running: RunningService, client: httpx.Client, number: signal.Signals
) -> None:
    assert client.get("/health/ready").status_code == 200
    supervisor = running.service.models["first"].supervisor
    os.kill(supervisor.worker.process.pid, number)
    assert until(lambda: ask(client, "first") == 503, 10) < 1.5
    not_ready = client.get("/health/ready")
    assert not_ready.status_code == 503
    assert "first" in not_ready.json()["error"]
    assert "second" not in not_ready.json()["error"]
    assert client.get("/health/live").status_code == 200
    statuses = set()

    def whole() -> bool:
        statuses.add(ask(client, "second"))
        return ask(client, "first") == 200

    until(whole)
    assert statuses == {200}
    assert client.get("/health/ready").status_code == 200
    assert f'bertsmith_worker_restarts{{model="first"}} {supervisor.restarts}' in (
        client.get("/metrics").text
    )


@pytest.mark.slow
def test_a_worker_that_keeps_dying_leaves_its_model_at_503_and_the_rest_at_work(
    running: RunningService, client: httpx.Client
) -> None:
    supervisor = running.service.models["first"].supervisor
    for _ in range(MOST_DEATHS):
        until(lambda: supervisor.is_alive)
        os.kill(supervisor.worker.process.pid, signal.SIGKILL)
        until(lambda: not supervisor.is_alive)
    until(lambda: "not started again" in client.post("/embed", json={"inputs": "a"}).text)
    assert ask(client, "first") == 503
    assert ask(client, "second") == 200
    assert client.get("/health/ready").status_code == 503


def test_a_folder_whose_model_does_not_work_is_never_served(folder: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    for path in folder.iterdir():
        (broken / path.name).write_bytes(path.read_bytes())
    weights = load_file(broken / "model.safetensors")
    name = next(one for one in weights if one.endswith("word_embeddings.weight"))
    weights[name] = torch.full_like(weights[name], float("nan"))
    save_file(weights, broken / "model.safetensors", metadata={"format": "pt"})
    (broken / "hashes.json").unlink()  # as if it had been written so
    done = subprocess.run(
        [sys.executable, "-m", "bertsmith", "serve", str(broken), "--port", "0"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode != 0
    assert "ready on" not in done.stderr
    assert "error:" in done.stderr
    assert "Traceback" not in done.stderr
