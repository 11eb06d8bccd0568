from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bertsmith.errors import ConfigError
from bertsmith.training import launch
from bertsmith.training.launch import launch_variables, main, relaunch

POSIX = pytest.mark.skipif(os.name != "posix", reason="signals")


def test_each_rank_gets_its_share_of_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERTSMITH_THREADS", "8")
    variables = launch_variables(3)
    assert variables["OMP_NUM_THREADS"] == "2"
    assert variables["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] == "1"
    assert launch_variables(16)["OMP_NUM_THREADS"] == "1"


def test_relaunching_hands_over_the_command_and_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[tuple[str, list[str], dict[str, str]]] = []

    def instead(path: str, command: list[str], variables: dict[str, str]) -> None:
        seen.append((path, command, variables))
        raise SystemExit(0)

    monkeypatch.setattr(launch.os, "name", "posix")
    monkeypatch.setattr(launch.os, "execve", instead)
    with pytest.raises(SystemExit):
        relaunch(["-m", "bertsmith", "pretrain", "bert"], devices=2, restarts=3)
    path, command, variables = seen[0]
    assert path == sys.executable
    assert command[-5:] == ["--", "-m", "bertsmith", "pretrain", "bert"]
    assert {"--devices=2", "--restarts=3"} <= set(command)
    assert variables["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] == "1"


def test_no_device_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least 1"):
        relaunch(["x.py"], devices=0)


def test_the_exit_code_is_that_of_the_rank_that_failed(tmp_path: Path) -> None:
    program = tmp_path / "fails.py"
    program.write_text(
        "import os, sys, time\nsys.exit(74) if os.environ['RANK'] == '1' else None\n"
    )
    assert main(["--devices=2", "--restarts=0", "--", str(program)]) == 74


@POSIX
def test_a_signal_reaches_every_rank_and_none_is_left(tmp_path: Path) -> None:
    program = tmp_path / "waits.py"
    program.write_text(
        "import os, pathlib, signal, sys, time\n"
        "here = pathlib.Path(sys.argv[1])\n"
        "def end(*_):\n"
        "    (here / ('ended-' + os.environ['RANK'])).touch()\n"
        "    sys.exit(75)\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "(here / ('pid-' + os.environ['RANK'])).write_text(str(os.getpid()))\n"
        "time.sleep(60)\n"
    )
    launcher = [sys.executable, "-m", "bertsmith.training.launch", "--devices=2", "--restarts=1"]
    process = subprocess.Popen(
        [*launcher, "--", str(program), str(tmp_path)],
        env=launch_variables(2),
        stderr=subprocess.PIPE,
        text=True,
    )
    pids = [_read(tmp_path / f"pid-{rank}") for rank in (0, 1)]
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=40)
    assert process.returncode == 75, said
    assert (tmp_path / "ended-0").exists()
    assert (tmp_path / "ended-1").exists()
    assert not any(_lives(pid) for pid in pids)


def _read(path: Path) -> int:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if path.exists() and path.read_text():
            return int(path.read_text())
        time.sleep(0.05)
    pytest.fail(f"{path.name} was never written")


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
