"""Ranks under the launcher that are killed, hang or are asked to stop (G1 to G4)."""

from __future__ import annotations

import os
import random
import signal
import statistics
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from fork_client import ForkServer
from launched_ranks import launched
from toy_training import final_state

from bertsmith.training.checkpoints.checkpoint import Checkpoints

pytestmark = [
    pytest.mark.reliability,
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="signals"),
]
LONG = bool(os.environ.get("BERTSMITH_LONG"))
STEPS = 12


@pytest.fixture(scope="module")
def ends(forks: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """How two ranks end that were left alone."""
    found = {}
    for mode in ("ddp", "fsdp"):
        folder = tmp_path_factory.mktemp(mode)
        forks.finish_ranks("rank toy", folder=folder, mode=mode, steps=STEPS)
        found[mode] = final_state(folder)
    return found


def end(process: subprocess.Popen[str], limit: float = 120.0) -> str:
    """What a group said until it ended; none of its processes may be left."""
    try:
        said, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    left = [pid for pid in every_process() if process.args[-1] in command_line(pid)]
    assert not left, said
    return said


def every_process() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    except OSError:  # ended meanwhile
        return ""


def test_a_killed_rank_restarts_the_group_and_the_end_is_bit_identical(
    tmp_path: Path, ends: dict[str, Any]
) -> None:
    """G1: at the first restart, wherever it is killed."""
    rng = random.Random(3)
    whole, recovery = [], []
    for number in range(20 if LONG else 1):
        place = tmp_path / str(number)
        place.mkdir()
        mode, rank = ("ddp", "fsdp")[number % 2], rng.randrange(2)
        die = [rank, rng.randrange(1, STEPS), str(place / "was-killed")]
        order = {"folder": str(place / "run"), "mode": mode, "steps": STEPS, "die": die}
        begun = time.monotonic()
        process = launched(place / "order.json", restarts=1, **order)
        said = end(process)
        whole.append(time.monotonic() - begun)
        assert process.returncode == 0, (order, said[-3000:])
        recovery.append(time.time() - (place / "was-killed").stat().st_mtime)
        assert final_state(place / "run") == ends[mode], order
    after, in_all = statistics.median(recovery), statistics.median(whole)
    print(
        f"recovered {len(whole)} of {len(whole)}; medians: {after:.1f} s from the kill to the end "
        f"of training, {in_all:.1f} s in all"
    )


def test_when_restarts_are_used_up_the_rank_and_its_signal_are_named(tmp_path: Path) -> None:
    """G2: and the last checkpoint is good, and nobody is left (see `end`)."""
    for number in range(4 if LONG else 1):
        place = tmp_path / str(number)
        place.mkdir()
        rank, mode = number % 2, ("ddp", "fsdp")[number // 2]
        killed = place / "killed"
        order = {"folder": str(place / "run"), "mode": mode, "die": [rank, 6, str(killed)]}
        process = launched(place / "order.json", **order)
        wait_for(killed, process)
        said = end(process, 30)
        assert process.returncode == 128 + signal.SIGKILL, said
        last = said.strip().splitlines()[-1]
        assert f"rank {rank}" in last, said
        assert "SIGKILL" in last
        found = Checkpoints(place / "run/checkpoints").newest()
        assert found is not None
        assert found.step == 4


def test_sigterm_to_the_launcher_stops_all_ranks_at_one_step(
    forks: ForkServer, tmp_path: Path, ends: dict[str, Any]
) -> None:
    """G3: they save, leave with the code for "go on", and the resumed end is the same."""
    rng = random.Random(4)
    for number in range(10 if LONG else 1):
        place = tmp_path / str(number)
        place.mkdir()
        mode = ("fsdp", "ddp")[number % 2]
        order = {"folder": str(place / "run"), "mode": mode, "steps": STEPS}
        process = launched(place / "order.json", **order, pause=0.1)
        wait_for(place / "run/checkpoints/step-00000004", process)
        time.sleep(rng.random())
        process.send_signal(signal.SIGTERM)
        said = end(process)
        assert process.returncode == 75, said
        found = Checkpoints(place / "run/checkpoints").newest()
        assert found is not None
        assert found.manifest["reason"] == "signal", said
        assert 4 < found.step < STEPS
        forks.finish_ranks("rank toy", folder=place / "run", mode=mode, steps=STEPS)
        assert final_state(place / "run") == ends[mode]


def test_a_rank_that_hangs_is_named_by_the_others(tmp_path: Path) -> None:
    """G4: within the time-out and ten seconds."""
    for mode in ("ddp", "fsdp") if LONG else ("fsdp",):
        hung = tmp_path / f"{mode}-hung"
        order = {"folder": str(tmp_path / mode), "mode": mode, "stop": [1, 6, str(hung)]}
        process = launched(tmp_path / f"{mode}.json", **order, timeout=2.0)
        wait_for(hung, process)
        begun = time.monotonic()
        read_until("waited in vain for rank 1", process)
        assert time.monotonic() - begun < 2 + 10
        if not LONG:  # the launcher itself kills it, but only after 30 seconds
            read_until("closing signal SIGTERM", process)
            time.sleep(2.5)  # long enough not to be taken for a rank that was killed first
            os.kill(int(hung.read_text()), signal.SIGKILL)
        said = end(process)
        assert process.returncode == 69, said
        assert Checkpoints(tmp_path / mode / "checkpoints").newest() is not None


def read_until(words: str, process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        if words in line:
            return
        seen.append(line)
    pytest.fail(f"nobody said {words!r}: {seen}")


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    limit = time.monotonic() + 120
    while not path.exists():
        assert process.poll() is None, "ended before it was to be stopped"
        assert time.monotonic() < limit
        time.sleep(0.02)
