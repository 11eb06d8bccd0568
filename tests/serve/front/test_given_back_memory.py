"""Memory of the service: what requests have left is given back to the system."""

from __future__ import annotations

from fresh_python import run_fresh

SCRIPT = """
from pathlib import Path
from bertsmith.serve.memory import give_back

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

blocks = [bytearray(60_000) for _ in range(2_000)]  # below the size that is mapped by itself
used = blocks[::50]  # pages in use between those that are free
del blocks
before = resident()
print(int(give_back()), before - resident())
"""


def test_free_memory_between_used_pages_is_given_back() -> None:
    able, freed = map(int, run_fresh(SCRIPT).split())
    if able:
        assert freed > 50_000_000
