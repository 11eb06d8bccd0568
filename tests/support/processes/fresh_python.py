"""Code in an interpreter of its own, where nothing is imported yet."""

from __future__ import annotations

import subprocess
import sys


def run_fresh(code: str) -> str:
    """What the code prints; its error is the test's if it fails."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
