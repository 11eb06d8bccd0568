"""The child runner: whatever a child does becomes a value, and nothing of it stays behind."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bertsmith.hardware import probe_process

MAIN = "bertsmith.hardware.probes"
posix = pytest.mark.skipif(os.name != "posix", reason="signals and process groups")


def run(option: str, limit: float = 30.0) -> probe_process.Ended:
    arguments = ["planted_probe", option, "1", str(limit)]
    return probe_process.run(MAIN, arguments, limit=limit, threads=1)


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"  # a zombie waits for init, it does not run


def gone_within(pids: list[int], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not any(map(alive, pids)):
            return True
        time.sleep(0.02)
    return False


def test_an_answer_comes_back_whole() -> None:
    ended = run("works=250")
    assert ended.answer is not None
    assert ended.answer["gflops"] == {"2048x384x1536": 250.0}
    assert (ended.code, ended.crash, ended.timed_out) == (0, None, False)


@posix
@pytest.mark.parametrize("name", ["SIGILL", "SIGSEGV", "SIGABRT", "SIGKILL"])
def test_a_crash_is_named_by_its_signal(name: str) -> None:
    ended = run(f"signal={signal.Signals[name].value}")
    assert ended.crash == name
    assert ended.answer is None


@posix
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
def test_a_hang_ends_at_the_limit_and_takes_its_own_children_along(tmp_path: Path) -> None:
    mark = tmp_path / "pids"
    start = time.monotonic()
    ended = run(f"hang={mark}", limit=2.0)
    assert ended.timed_out
    assert ended.answer is None
    assert time.monotonic() - start < 8
    pids = [int(word) for word in mark.read_text().split()]
    assert len(pids) == 2
    assert gone_within(pids, 3)


@pytest.mark.skipif(sys.platform != "linux", reason="death signal of the parent")
def test_a_child_does_not_outlive_a_parent_that_is_killed(tmp_path: Path) -> None:
    mark = tmp_path / "pids"
    code = (
        "from bertsmith.hardware.probe_process import run\n"
        f"run({MAIN!r}, ['planted_probe', 'hang={mark}', '1', '60'], limit=60, threads=1)"
    )
    root = Path(probe_process.__file__).parents[2]
    path = os.pathsep.join([str(root), os.environ["PYTHONPATH"]])
    variables = {"PYTHONPATH": path, "TMPDIR": str(tmp_path)}  # nobody is left to clean up
    parent = subprocess.Popen([sys.executable, "-c", code], env=os.environ | variables)
    end = time.monotonic() + 20
    while not (mark.exists() and mark.read_text().count(" ")) and time.monotonic() < end:
        time.sleep(0.02)
    probe, sleeper = (int(word) for word in mark.read_text().split())
    parent.kill()
    parent.wait()
    try:
        assert gone_within([probe], 5)
    finally:
        os.kill(sleeper, signal.SIGKILL)  # a grandchild has no such tie


def test_noise_of_libraries_does_not_mix_with_the_answer() -> None:
    ended = run("noise")
    assert ended.answer is not None
    assert "so does C" in ended.stderr


@pytest.mark.parametrize(
    "output", ["", "not json", "[1, 2]", '{"a": 1', "\x00\xff" * 5, "[" * 9000]
)
def test_garbage_on_stdout_is_no_answer(output: str) -> None:
    arguments = [output.replace("\x00", "\x01"), "0"]
    ended = probe_process.run("garbage_child", arguments, limit=30, threads=1)
    assert ended.code == 0
    assert ended.answer is None


def test_an_answer_of_a_child_that_failed_is_not_believed() -> None:
    ended = probe_process.run("garbage_child", ['{"gflops": {}}', "3"], limit=30, threads=1)
    assert ended.code == 3
    assert ended.answer is None


def test_a_flood_on_stderr_is_cut_to_its_tail() -> None:
    ended = run("flood")
    assert ended.answer is not None
    assert len(ended.stderr) <= 16_000


def test_a_missing_module_ends_with_a_code_and_no_answer() -> None:
    ended = probe_process.run("bertsmith.no_such_module", [], limit=30, threads=1)
    assert ended.code != 0
    assert ended.answer is None
    assert "no_such_module" in ended.stderr


def test_an_exception_leaves_its_message_in_the_last_line() -> None:
    ended = run("raise")
    assert ended.stderr.strip().splitlines()[-1] == "RuntimeError: the planted reason"


@posix
def test_a_child_writes_no_core_file_and_starts_from_a_clean_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MKL_VERBOSE", "1")
    monkeypatch.setenv("PYTHONINSPECT", "1")
    monkeypatch.setenv("OMP_NUM_THREADS", "77")
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
    (tmp_path / "json.py").write_text("raise SystemExit('code of the working folder ran')")
    monkeypatch.chdir(tmp_path)
    names = ["MKL_VERBOSE", "PYTHONINSPECT", "OMP_NUM_THREADS", "ONEDNN_MAX_CPU_ISA"]
    ended = run(f"limits={json.dumps(names)}")
    assert ended.answer is not None
    facts = ended.answer["facts"]
    assert facts["core"] == [0, 0]
    assert list(facts["variables"].values()) == [None, None, "1", "AVX512_CORE_BF16"]
    assert str(tmp_path) not in facts["path"]


@posix
def test_it_works_with_every_standard_stream_closed() -> None:
    code = (
        "import os, sys\n"
        "from bertsmith.hardware import probe_process\n"
        f"asked = [{MAIN!r}, ['planted_probe', 'works', '1', '30']]\n"
        "ended = probe_process.run(*asked, limit=30, threads=1)\n"
        "os._exit(0 if ended.answer else 9)"
    )
    root = Path(probe_process.__file__).parents[2]
    path = os.pathsep.join([str(root), os.environ["PYTHONPATH"]])
    command = ["sh", "-c", 'exec "$0" -c "$1" <&- >&- 2>&-', sys.executable, code]
    assert subprocess.run(command, env=os.environ | {"PYTHONPATH": path}).returncode == 0
