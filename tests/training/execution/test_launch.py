from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file
from toy_corpus import toy_corpus

from bertsmith.errors import ConfigError
from bertsmith.training.execution import launch
from bertsmith.training.execution.launch import launch_variables, main, relaunch

POSIX = pytest.mark.skipif(os.name != "posix", reason="signals")


@pytest.fixture(autouse=True)
def own_signals() -> Iterator[None]:
    """torch's launcher leaves its signal handlers behind; later tests need the usual ones."""
    names = [name for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, name)]
    before = {name: signal.getsignal(getattr(signal, name)) for name in names}
    yield
    for name, handler in before.items():
        signal.signal(getattr(signal, name), handler)


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


@pytest.mark.parametrize(
    ("ending", "starts"), [("sys.exit(2)", 1), ("os.kill(os.getpid(), signal.SIGKILL)", 3)]
)
@POSIX
def test_only_ranks_that_were_killed_are_started_again(
    tmp_path: Path, ending: str, starts: int
) -> None:
    program, seen = tmp_path / "ends.py", tmp_path / "seen"
    program.write_text(
        "import os, signal, sys\n"
        "if os.environ['RANK'] == '0':\n"
        f"    open({str(seen)!r}, 'a').write('.')\n"
        f"    {ending}\n"
    )
    assert main(["--devices=1", "--restarts=2", "--", str(program)]) != 0
    assert len(seen.read_text()) == starts


@POSIX
def test_a_rank_that_only_missed_another_is_not_the_cause(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    program = tmp_path / "missed.py"
    program.write_text(
        "import os, signal, sys\n"
        "sys.exit(69) if os.environ['RANK'] == '0' else os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert main(["--devices=2", "--restarts=0", "--", str(program)]) == 128 + signal.SIGKILL
    assert "rank 1" in caplog.messages[-1]
    assert "SIGKILL" in caplog.messages[-1]


KILLED, LOST, STOPPED = -9, 69, 75


@pytest.mark.parametrize(
    ("found", "cause"),
    [
        ([(0, LOST, 5), (1, KILLED, 5)], 1),  # both at once: rank 0 only missed rank 1
        ([(1, 74, 5), (0, STOPPED, 5)], 1),  # rank 0 was stopped by the launcher
        ([(0, LOST, 5), (2, STOPPED, 5), (1, KILLED, 35)], 0),  # rank 1 hung, and names it
        ([(2, 70, 5), (0, 70, 5), (1, -15, 5)], 2),
        ([(1, LOST, 5)], 1),
    ],
)
def test_the_root_cause_is_no_rank_that_was_stopped_or_missed_another(
    found: list[tuple[int, int, int]], cause: int
) -> None:
    failures = {rank: SimpleNamespace(exitcode=code, timestamp=at) for rank, code, at in found}
    assert launch.root_cause(failures)[0] == cause


def test_a_rank_leaves_without_the_last_part_of_the_interpreter_and_nothing_is_lost(
    tmp_path: Path,
) -> None:
    """Threads of gloo that are still there would abort it; here an exit handler stands for them."""
    program = tmp_path / "leaves.py"
    program.write_text(
        "import atexit, logging, os, sys\n"
        "from bertsmith.cli import app\n"
        "atexit.register(os.abort)\n"
        "logging.basicConfig(filename=sys.argv[1])\n"
        "app._run = lambda *a, **b: (sys.stdout.write('told'), logging.error('logged'), 75)[2]\n"
        "app.main([])\n"
    )
    codes = {}
    for name, variables in (("rank", {"TORCHELASTIC_RUN_ID": "a"}), ("alone", {})):
        plain = {k: v for k, v in os.environ.items() if k != "TORCHELASTIC_RUN_ID"}
        done = subprocess.run(
            [sys.executable, str(program), str(tmp_path / f"{name}.log")],
            env=plain | variables,
            capture_output=True,
            text=True,
            check=False,
        )
        codes[name] = done.returncode
        assert done.stdout == "told" or name == "alone"
        assert "logged" in (tmp_path / f"{name}.log").read_text()
    assert codes["rank"] == 75
    assert codes["alone"] != 75  # a process of its own ends as usual, exit handlers and all


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
    launcher = [
        sys.executable,
        "-m",
        "bertsmith.training.execution.launch",
        "--devices=2",
        "--restarts=1",
    ]
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


@pytest.mark.slow
def test_the_command_trains_on_two_sharded_ranks_as_on_one(tmp_path: Path) -> None:
    corpus = toy_corpus(tmp_path / "corpus")
    command = [
        *(sys.executable, "-m", "bertsmith", "pretrain", "bert", "--corpus", str(corpus)),
        *("--size", "tiny", "--steps", "8", "--precision", "fp32", "--threads", "1"),
        *("--set", "batch.tokens=1024", "--set", "batch.micro_tokens=512", "--set", "save.every=4"),
        *("--set", "model.dropout=0.0", "--set", "log.tensorboard=false", "--out"),
    ]
    sharded = ["--devices", "2", "--set", "run.sharding=fsdp"]
    for name, more in (("one", []), ("two", sharded)):
        out = str(tmp_path / name)
        done = subprocess.run([*command, out, *more], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "held-out text" in done.stdout
    saved = tmp_path / "two/checkpoints/step-00000008"
    assert len(list(saved.glob("shard-*.safetensors"))) == 2
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("one", "two"))
    assert one.keys() == two.keys()
    for name in one:
        torch.testing.assert_close(two[name], one[name], rtol=1e-5, atol=1e-6)
