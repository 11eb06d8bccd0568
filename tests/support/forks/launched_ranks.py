"""Starts groups of toy ranks under the launcher."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from import_path import import_path

HERE = Path(__file__).parent


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
