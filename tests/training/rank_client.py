"""Starts groups of toy ranks, forked or under the launcher."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


class RankServer:
    """Talks to one server process; one group at a time."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "rank_server.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, folder: Path, *, world: int = 2, **order: Any) -> list[dict[str, Any]]:
        """What each rank of a group came to."""
        assert self._process.stdin is not None
        line = json.dumps({"folder": str(folder), "world": world, **order})
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        ranks: list[dict[str, Any]] = self._answer()["ranks"]
        return ranks

    def finish(self, folder: Path, *, world: int = 2, **order: Any) -> list[dict[str, Any]]:
        """A group that must end well."""
        ranks = self.run(folder, world=world, **order)
        assert [rank["code"] for rank in ranks] == [0] * world, [rank["error"] for rank in ranks]
        return ranks

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the server of ranks ended"
        answer: dict[str, Any] = json.loads(line)
        return answer


def launched(order_file: Path, *, world: int = 2, restarts: int = 0, **order: Any) -> Any:
    """The launcher of the product with ranks of the toy, as a running process."""
    order_file.write_text(json.dumps(order))
    command = [sys.executable, "-m", "bertsmith.training.launch", f"--devices={world}"]
    command += [f"--restarts={restarts}", "--grace=5", "--"]
    variables = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1", "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [*command, str(HERE / "rank_toy.py"), str(order_file)],
        env=os.environ | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
