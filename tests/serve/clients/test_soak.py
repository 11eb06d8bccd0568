"""A service at work for a while: memory, descriptors and latency stay as they were."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest
from service_process import ServiceProcess
from tiny_finetuning import tiny_folder

from bertsmith.serve.clients.load import LoadPlan, generate_load

LONG = bool(os.environ.get("BERTSMITH_LONG"))
ROUND = 30.0 if LONG else 1.0  # seconds
ROUNDS, WARM = (20, 4) if LONG else (6, 2)
MOST_SLOPE = 1e6  # bytes per minute, of the long run
MOST_GROWTH = 10e6  # bytes, of the short one

pytestmark = [pytest.mark.reliability, pytest.mark.slow]


def memory(service: ServiceProcess) -> int:
    """Bytes of the front and its workers."""
    pids = [service.process.pid]
    for task in Path(f"/proc/{service.process.pid}/task").iterdir():
        pids += map(int, (task / "children").read_text().split())
    pages = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids)
    return pages * os.sysconf("SC_PAGE_SIZE")


def settled_descriptors(service: ServiceProcess) -> int:
    """Once the service has noticed that connections of the generator were closed."""
    found = service.descriptors()
    while True:
        time.sleep(0.5)
        if (again := service.descriptors()) >= found:
            return again
        found = again


def test_memory_and_descriptors_stay_as_they_were(tmp_path: Path) -> None:
    service = ServiceProcess(tiny_folder(tmp_path / "model"))
    try:
        peak = generate_load(LoadPlan(url=service.url, clients=8, seconds=2 * ROUND / 3))
        rate = 0.7 * peak.to_json()["requests_per_second"]
        sizes, statuses = [], set()
        descriptors = 0
        for number in range(ROUNDS):
            report = generate_load(LoadPlan(url=service.url, rate=rate, seconds=ROUND, seed=number))
            statuses |= set(report.statuses)
            sizes.append(memory(service))
            # Connections of the round are closed, and the service notices.
            if number == WARM:
                descriptors = settled_descriptors(service)
        assert statuses <= {"200", "429"}
        settled = np.array(sizes[WARM:], np.float64)
        assert settled[-1] - settled[0] < MOST_GROWTH
        if LONG:
            minutes = np.arange(len(settled)) * ROUND / 60
            assert np.polyfit(minutes, settled, 1)[0] < MOST_SLOPE
        assert settled_descriptors(service) <= descriptors
    finally:
        service.close()
