"""The log of requests where it cannot be written: a full disk, a closed pipe, a slow reader."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from service_process import READY
from tiny_finetuning import tiny_folder

from bertsmith.serve.access_log import MOST_BYTES, PIECE, AccessLog


class Said:
    """What was warned of."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def __call__(self, message: str) -> None:
        self.messages.append(message)


def test_lines_are_written_whole_and_in_their_order(tmp_path: Path) -> None:
    place = tmp_path / "log"
    with place.open("wb") as file:
        log = AccessLog(file.fileno())
        for number in range(500):
            log({"id": number, "route": "/embed"})
        log.close()
    lines = [json.loads(line) for line in place.read_text().splitlines()]
    assert [line["id"] for line in lines] == list(range(500))
    assert log.lost == 0


def test_a_full_disk_costs_lines_and_one_warning() -> None:
    said = Said()
    with Path("/dev/full").open("wb") as full:
        log = AccessLog(full.fileno(), warn=said)
        for number in range(100):
            log({"id": number})
        log.close()
    assert log.lost == 100
    (message,) = said.messages
    assert "no space left" in message
    assert "bertsmith_log_lines_lost" in message


def test_a_line_that_was_written_in_part_is_completed_when_there_is_room(tmp_path: Path) -> None:
    place, said = tmp_path / "log", Said()
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        with place.open("wb") as file:
            log = AccessLog(file.fileno(), warn=said)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
            for number in range(20):
                log({"id": number, "a": "b" * 30})
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            for number in range(20, 25):
                log({"id": number, "a": "b" * 30})
            log.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    found = [json.loads(line)["id"] for line in place.read_text().splitlines()]
    assert found == [*range(25 - 5 - log.lost), *range(20, 25)]
    assert 0 < log.lost < 20
    assert len(said.messages) == 1


def test_a_closed_pipe_costs_lines_and_one_warning() -> None:
    said = Said()
    reader, writer = os.pipe()
    log = AccessLog(writer, warn=said)
    log({"id": 0})
    os.close(reader)
    for number in range(10):
        log({"id": number})
    os.close(writer)
    assert log.lost == 10
    assert len(said.messages) == 1


def test_a_reader_that_is_too_slow_is_not_waited_for() -> None:
    said = Said()
    reader, writer = os.pipe()
    log = AccessLog(writer, warn=said)
    record = {"id": "x" * 1_000}
    start = time.monotonic()
    for _ in range(3 * MOST_BYTES // 1_000):
        log(record)
    assert time.monotonic() - start < 5.0
    lost = log.lost
    assert lost > MOST_BYTES // 1_000
    assert len(said.messages) == 1
    found = b""
    os.set_blocking(reader, False)
    while True:  # it reads again: what waited comes in whole lines
        try:
            found += os.read(reader, 1 << 16)
        except BlockingIOError:
            if not log._lines:
                break
            log.flush()
    lines = found.splitlines()
    assert all(json.loads(line) == record for line in lines)
    assert len(lines) + lost == 3 * MOST_BYTES // 1_000
    assert log.lost == lost
    os.close(reader)
    os.close(writer)


def test_the_end_waits_a_moment_for_a_slow_reader() -> None:
    reader, writer = os.pipe()
    log = AccessLog(writer)
    for _ in range(200_000 // PIECE):
        log({"id": "x" * PIECE})
    start = time.monotonic()
    log.close()
    assert 0.5 < time.monotonic() - start < 3.0
    assert log.lost > 0
    os.close(reader)
    os.close(writer)


@pytest.mark.parametrize("stream", ["full", "closed"])
def test_the_service_goes_on_without_its_log(
    tmp_path_factory: pytest.TempPathFactory, stream: str
) -> None:
    folder = tiny_folder(tmp_path_factory.mktemp("log") / "model")
    command = [sys.executable, "-m", "bertsmith", "serve", f"tiny={folder}", "--port", "0"]
    reader, writer = os.pipe()
    full = os.open("/dev/full", os.O_WRONLY)
    service = subprocess.Popen(
        [*command, "--threads", "1", "--precision", "fp32"],
        stdout=full if stream == "full" else writer,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    for descriptor in (reader, writer, full):
        os.close(descriptor)
    try:
        assert service.stderr is not None
        url = next(found[1] for line in service.stderr if (found := READY.search(line)))
        with httpx.Client(base_url=url, timeout=30) as client:
            for _ in range(10):
                assert client.post("/embed", json={"inputs": "the bird"}).status_code == 200
            metrics = client.get("/metrics").text
        service.terminate()
        rest = service.stderr.read()
        assert service.wait(60) == 0
    finally:
        service.kill()
        service.wait()
    assert "bertsmith_log_lines_lost 10.0" in metrics
    assert rest.count("the log of requests cannot be written") == 1
    assert "Traceback" not in rest
