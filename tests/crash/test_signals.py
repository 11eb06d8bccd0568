"""Signals and locks: a run that is asked to stop saves first; a folder belongs to one run."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fork_client import ForkServer
from toy_training import final_state

pytestmark = pytest.mark.reliability
LONG = bool(os.environ.get("BERTSMITH_LONG"))
PAUSE = 0.004  # a micro-batch; two a step


@pytest.fixture
def other() -> Iterator[ForkServer]:
    server = ForkServer()
    yield server
    server.close()


def wait_for_lock(folder: Path) -> None:
    deadline = time.monotonic() + 20
    while not (folder / "log.jsonl").exists():
        assert time.monotonic() < deadline
        time.sleep(0.002)
    time.sleep(0.01)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_a_signal_saves_the_current_step_and_the_run_goes_on_identically(
    forks: ForkServer, tmp_path: Path, name: str
) -> None:
    assert forks.run("toy", folder=tmp_path / "straight", pause=PAUSE)["code"] == 0
    end = final_state(tmp_path / "straight")
    rng = random.Random(name)
    for number in range(17 if LONG else 2):
        folder = tmp_path / str(number)
        forks.start("toy", folder=folder, pause=PAUSE)
        wait_for_lock(folder)
        time.sleep(rng.random() * 0.15)
        forks.send(getattr(signal, name))
        sent = time.monotonic()
        ended = forks.wait()
        assert ended["code"] == 75, ended
        assert time.monotonic() - sent < 2.0
        newest = sorted((folder / "checkpoints").glob("step-*"))[-1]
        steps = [json.loads(line)["step"] for line in (folder / "log.jsonl").open()]
        assert int(newest.name.removeprefix("step-")) >= max(steps, default=1)
        assert forks.run("toy", folder=folder, pause=PAUSE)["code"] == 0
        assert final_state(folder) == end


def test_a_second_signal_ends_at_once_without_damage(forks: ForkServer, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    forks.start("toy", folder=folder, pause=2.0)
    wait_for_lock(folder)
    forks.send(signal.SIGTERM)
    time.sleep(0.7)
    forks.send(signal.SIGTERM)
    sent = time.monotonic()
    assert forks.wait()["code"] == 128 + signal.SIGTERM
    assert time.monotonic() - sent < 0.7
    assert forks.run("toy", folder=folder)["code"] == 0


def test_a_signal_that_arrives_twice_at_once_is_one_request(
    forks: ForkServer, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    forks.start("toy", folder=folder, pause=0.05)
    wait_for_lock(folder)
    forks.send(signal.SIGINT)
    time.sleep(0.02)
    forks.send(signal.SIGTERM)
    assert forks.wait()["code"] == 75


def test_a_second_run_in_the_folder_is_told_who_holds_it(
    forks: ForkServer, other: ForkServer, tmp_path: Path
) -> None:
    for number in range(20 if LONG else 2):
        folder = tmp_path / str(number)  # a log of an earlier run would not be waited for
        forks.start(
            "toy", folder=folder, pause=1.0
        )  # still at work when a busy machine gets to the other
        wait_for_lock(folder)
        ended = other.run("toy", folder=folder)
        assert ended["code"] == 73
        assert ended["seconds"] < 2.0
        assert ended["error"].startswith("LockedError")
        assert f"another run is at work in {folder}" in ended["error"]
        assert f"process {forks.pid} on {socket.gethostname()}" in ended["error"]
        assert "give another folder" in ended["error"]
        forks.send(signal.SIGKILL)
        assert forks.wait()["code"] == -9
        assert other.run("toy", folder=folder)["code"] == 0
