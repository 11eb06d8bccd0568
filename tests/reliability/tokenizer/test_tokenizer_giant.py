"""C2: ten million characters in bounded time and memory, measured in a child process."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.reliability, pytest.mark.slow]

HERE = Path(__file__).parent
CHILD = f"""
import json, resource, sys, time
sys.path[:0] = [{str(HERE)!r}, {str(HERE.parents[2] / "src")!r}]
import tiny_vocabulary
from bertsmith.text.truncation import Truncation

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

unit, sizes = json.loads(sys.argv[1])
bert = tiny_vocabulary.bert(more=("中", "б"))
bert.encode("warm up")
times, before = [], None
for size in sizes:
    text = unit * (size // len(unit.encode()))
    before = peak()
    start = time.perf_counter()
    found = bert.encode(text, truncation=Truncation(max_length=512))
    times.append(time.perf_counter() - start)
    del text
print(json.dumps([times, peak() - before, found.total_cut + len(found) - 2]))
"""


def measure(unit: str, *sizes: int) -> tuple[list[float], float, int]:
    """Seconds for each size in bytes, megabytes on top for the last, tokens of the last."""
    ran = subprocess.run(
        [sys.executable, "-c", CHILD, json.dumps([unit, sizes])],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return tuple(json.loads(ran.stdout))


def test_one_word_of_ten_megabytes_takes_seconds_and_little_memory() -> None:
    (seconds,), megabytes, tokens = measure("a", 10_000_000)
    assert tokens == 1
    assert seconds <= 3
    assert megabytes <= 200


@pytest.mark.parametrize(
    ("unit", "tokens"),
    [
        ("a", lambda n: 1),
        ("\u0301", lambda n: 0),
        (".", lambda n: n),
        ("中", lambda n: n // 3),
        (" ", lambda n: 0),
        ("aб", lambda n: 1),
        ("a中", lambda n: n // 4 * 2),
    ],
)
def test_time_grows_with_the_text_and_no_faster(unit: str, tokens) -> None:
    times, _, count = measure(unit, 300_000, 3_000_000)
    assert count == tokens(3_000_000)
    assert times[1] <= 12 * max(times[0], 0.02)
