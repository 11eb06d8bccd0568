"""How long torch's OpenMP threads spin while they wait for each other.

libgomp, which torch loads on Linux, spins for 300,000 rounds (milliseconds) before a waiting
thread sleeps. On a busy machine the thread that is waited for has no processor meanwhile, and two
threads become slower than one. A short spin costs nothing on an idle machine:
`benchmarks/busy_machine.py` measures both.
"""

from __future__ import annotations

import os
import sys

SPIN_ROUNDS = 2000  # of a pause instruction each: about a tenth of a millisecond
SPIN_VARIABLE = "GOMP_SPINCOUNT"
# Any of these is the user's own decision on how threads wait.
DECIDED_BY = (SPIN_VARIABLE, "OMP_WAIT_POLICY", "KMP_BLOCKTIME", "KMP_LIBRARY")


def limit_spinning() -> None:
    """Set a short spin for torch in this process and its children.

    libgomp reads the variable once, when torch loads it. A process that has torch already, or
    whose user chose how threads wait, is left as it is.
    """
    if "torch" not in sys.modules and not any(name in os.environ for name in DECIDED_BY):
        os.environ[SPIN_VARIABLE] = str(SPIN_ROUNDS)
