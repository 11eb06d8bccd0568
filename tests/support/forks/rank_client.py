"""Starts groups of toy ranks, forked or under the launcher."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from import_path import import_path
from line_server import LineServer

HERE = Path(__file__).parent


class RankServer:
    """Talks to one server process; one group at a time."""

    def __init__(self) -> None:
        self._server = LineServer("rank_server.py")
        self.close = self._server.close

    def run(self, folder: Path, *, world: int = 2, **order: Any) -> list[dict[str, Any]]:
        """What each rank of a group came to."""
        ranks: list[dict[str, Any]] = self._server.ask(folder=str(folder), world=world, **order)[
            "ranks"
        ]
        return ranks

    def finish(self, folder: Path, *, world: int = 2, **order: Any) -> list[dict[str, Any]]:
        """A group that must end well."""
        ranks = self.run(folder, world=world, **order)
        assert [rank["code"] for rank in ranks] == [0] * world, [rank["error"] for rank in ranks]
        return ranks


def launched(order_file: Path, *, world: int = 2, restarts: int = 0, **order: Any) -> Any:
    """The launcher of the product with ranks of the toy, as a running process."""
    order_file.write_text(json.dumps(order))
    command = [sys.executable, "-m", "bertsmith.training.execution.launch", f"--devices={world}"]
    command += [f"--restarts={restarts}", "--grace=5", "--"]
    variables = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1", "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [*command, str(HERE / "rank_toy.py"), str(order_file)],
        env=os.environ | {"PYTHONPATH": import_path()} | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
