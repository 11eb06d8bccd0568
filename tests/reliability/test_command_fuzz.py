"""No command ends with a bug on input or surroundings that are wrong: codes, time, messages.

Each case is a working command with one thing wrong (tests/support/cases/fuzz_cases.py). By default
a sample runs; `BERTSMITH_LONG=1` runs all 2,000.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from command_line import COMMAND, environment
from fork_client import ForkServer
from fuzz_cases import Case, Surroundings, make_case
from fuzz_material import Material, make_material, working_commands
from fuzz_verdict import fault_of

from bertsmith.cli.command_table import COMMANDS, command_of

pytestmark = pytest.mark.reliability
LONG = os.environ.get("BERTSMITH_LONG") == "1"
CASES = range(2_000) if LONG else range(0, 2_000, 50)
PLAIN = Surroundings()
SECONDS = 30.0  # for one case, on a busy machine


class Commands:
    """Runs commands in forks of one process."""

    def __init__(self, forks: ForkServer, home: Path) -> None:
        self._forks = forks
        self._cache = {"XDG_CACHE_HOME": str(home)}

    def run(self, arguments: list[str], cwd: Path, around: Surroundings = PLAIN) -> dict[str, Any]:
        changes = asdict(around) | {"environment": self._cache | around.environment}
        report = self._forks.run("fuzz", arguments=arguments, cwd=cwd, seconds=SECONDS, **changes)
        assert not report["error"], report
        ended: dict[str, Any] = report["ended"]
        return ended


@pytest.fixture(scope="module")
def commands(forks: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> Commands:
    return Commands(forks, tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def material(commands: Commands, tmp_path_factory: pytest.TempPathFactory) -> Material:
    return make_material(tmp_path_factory.mktemp("material"), commands.run)


def test_every_command_is_fuzzed(tmp_path: Path, material: Material) -> None:
    assert {command_of(command)[0] for _, command in working_commands(material, tmp_path)} == set(
        COMMANDS
    )


def test_one_thing_wrong_gives_a_documented_code_and_names_it(
    commands: Commands, material: Material, tmp_path: Path
) -> None:
    faults: list[str] = []
    codes: Counter[int] = Counter()
    for number in CASES:
        place = tmp_path / str(number)
        case = make_case(number, material, place)
        answer = commands.run(case.arguments, place, case.around)
        codes[answer["code"]] += 1
        fault = fault_of(case, answer)
        if fault is not None:
            faults.append(_described(case, answer, fault))
        _remove(place)
    assert not faults, "\n".join([f"{len(faults)} of {len(CASES)}, codes {codes}", *faults])
    assert codes[0] > len(CASES) // 10  # not everything is refused
    assert codes[2] > len(CASES) // 4


def _described(case: Case, answer: dict[str, Any], fault: str) -> str:
    shown = " ".join(case.arguments[:2])
    return (
        f"{case.number}: {fault} | {case.fault} | {shown!a:.60} | code {answer['code']}, "
        f"{answer['seconds']:.1f} s | {answer['stderr'][-300:]!a}"
    )


def _remove(place: Path) -> None:
    for path in (place, *place.rglob("*")):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)
    shutil.rmtree(place)


@pytest.mark.parametrize(
    ("redirection", "code", "message"),
    [
        (">&-", 74, b"error: standard output is closed; redirect it to a file or to /dev/null\n"),
        (">/dev/full", 74, b"error: cannot write to standard output: no space left on device"),
        ("2>&-", 0, b""),
        ("<&- 2>&- >/dev/null", 0, b""),
        ("| true", 0, b""),
    ],
)
def test_the_streams_of_a_real_process(redirection: str, code: int, message: bytes) -> None:
    line = f'"$@" {redirection}'
    done = subprocess.run(
        ["bash", "-c", line, "bash", *COMMAND, "recipes"],
        capture_output=True,
        env=environment(),
        timeout=60,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert done.stderr.startswith(message)
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr
