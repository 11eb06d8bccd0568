"""How long each test file takes, and what follows: long files first, and a choice of fast ones.

`tests/durations.json` holds the seconds of each file, its fixtures included. `--record-durations`
writes what a run measured into it; `--fast` leaves out the files that it calls slow. With `-n`, a
worker takes one file at a time, the longest that is left: none of them is alone at the end. Workers
share the cores: threads of tiny models that wait for each other would take a third of the time.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

SLOW = 2.0  # seconds of a file that --fast leaves out

if _workers := int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "0")):  # before torch is there
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // _workers)))


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("order of the suite")
    group.addoption("--fast", action="store_true", help="leave out files that take seconds")
    group.addoption(
        "--record-durations", action="store_true", help="store what each file took, for later runs"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(FileOrder(config))


class FileOrder:
    """Chooses and sorts test files by their recorded seconds."""

    def __init__(self, config: pytest.Config) -> None:
        self._record: Path = config.rootpath / "tests" / "durations.json"
        self._known = self._read()
        self._measured: defaultdict[str, float] = defaultdict(float)
        self._is_worker = hasattr(config, "workerinput")

    def _read(self) -> dict[str, float]:
        if not self._record.is_file():
            return {}
        known: dict[str, float] = json.loads(self._record.read_text(encoding="utf-8"))
        return known

    def _seconds(self, file: str) -> float:
        """What a file took; a new one may take long, so it begins early."""
        return self._known.get(file, max(self._known.values(), default=0.0))

    def pytest_ignore_collect(self, collection_path: Path, config: pytest.Config) -> bool | None:
        """A file that is left out is not even imported."""
        if not config.option.fast or not collection_path.is_relative_to(config.rootpath):
            return None
        place = collection_path.relative_to(config.rootpath).as_posix()
        return True if self._known.get(place, 0.0) > SLOW else None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Long files first where several processes share them; as they stand otherwise."""
        if self._is_worker:
            items.sort(key=lambda item: -self._seconds(_file(item.nodeid)))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(
        self, config: pytest.Config, log: Any
    ) -> LoadFileScheduling | None:
        """A file is one piece of work; its module's fixtures are made once."""
        if config.option.dist != "load":  # something else was asked for
            return None
        config.option.loadscopereorder = False  # keep the order of the items
        return LoadFileScheduling(config, log)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._measured[_file(report.nodeid)] += report.duration

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if not session.config.option.record_durations or self._is_worker:
            return
        found = self._read() | {path: round(s, 1) for path, s in self._measured.items()}
        root = session.config.rootpath
        by_name = {path: found[path] for path in sorted(found) if (root / path).is_file()}
        self._record.write_text(json.dumps(by_name, indent=1) + "\n", encoding="utf-8")


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0]
