"""The order of the suite: long files first, slow ones left out on request, records kept."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from suite_order import FileOrder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "tests").mkdir()
    record = {"tests/test_long.py": 30.0, "tests/test_short.py": 0.5, "tests/test_gone.py": 9.0}
    (tmp_path / "tests" / "durations.json").write_text(json.dumps(record))
    for name in ("long", "short", "new"):
        (tmp_path / "tests" / f"test_{name}.py").touch()
    return tmp_path


def config(root: Path, *, worker: bool = False, **options: bool) -> Any:
    chosen = {"fast": False, "record_durations": False} | options
    found = SimpleNamespace(rootpath=root, option=SimpleNamespace(**chosen))
    if worker:
        found.workerinput = {}
    return found


def items() -> list[Any]:
    names = ("short.py::a", "short.py::b", "long.py::c", "new.py::d", "long.py::e")
    return [SimpleNamespace(nodeid=f"tests/test_{name}") for name in names]


def names(found: list[Any]) -> str:
    return "".join(item.nodeid[-1] for item in found)


def test_workers_take_unknown_and_long_files_first_and_a_file_stays_in_order(root: Path) -> None:
    shared = items()
    FileOrder(config(root, worker=True)).pytest_collection_modifyitems(shared)
    assert names(shared) == "cdeab"
    alone = items()
    FileOrder(config(root)).pytest_collection_modifyitems(alone)
    assert names(alone) == "abcde"


def test_fast_leaves_out_what_is_known_to_take_seconds(root: Path) -> None:
    fast = config(root, fast=True)
    left_out = {
        name: FileOrder(fast).pytest_ignore_collect(root / "tests" / f"test_{name}.py", fast)
        for name in ("long", "short", "new")
    }
    assert left_out == {"long": True, "short": None, "new": None}
    plain = config(root)
    assert FileOrder(plain).pytest_ignore_collect(root / "tests/test_long.py", plain) is None


def test_a_record_keeps_what_did_not_run_and_forgets_what_is_gone(root: Path) -> None:
    recording = config(root, record_durations=True)
    order = FileOrder(recording)
    for seconds in (1.25, 2.5):
        report: Any = SimpleNamespace(nodeid="tests/test_new.py::d", duration=seconds)
        order.pytest_runtest_logreport(report)
    session: Any = SimpleNamespace(config=recording)
    order.pytest_sessionfinish(session)
    written = json.loads((root / "tests" / "durations.json").read_text())
    assert written == {
        "tests/test_long.py": 30.0,
        "tests/test_new.py": 3.8,
        "tests/test_short.py": 0.5,
    }
