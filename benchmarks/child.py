"""One side of a benchmark in a process of its own, with the threads that the other has, too."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any


def child(script: str, job: dict[str, Any], threads: int) -> dict[str, Any]:
    """Run `script --child JOB`, and read the JSON of its last line."""
    variables = os.environ | {
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        "BERTSMITH_THREADS": str(threads),
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "TRANSFORMERS_VERBOSITY": "error",
    }
    done = subprocess.run(
        [sys.executable, script, "--child", json.dumps(job)],
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{job} failed:\n{done.stderr[-3000:]}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found
