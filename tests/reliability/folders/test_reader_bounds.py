"""Numbers of small files have bounds: no folder takes more than 2 s or 300 MB to be refused.

Every number of every JSON file of every kind of folder is made huge, tiny, negative and of another
type, one at a time. A kind of folder, or a module that reads files of a folder, that is not here
fails the test.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from elmo_fixture import write_published
from written_folders import WRITTEN

import bertsmith
from bertsmith.folders.kinds import KINDS

pytestmark = pytest.mark.reliability
SOURCE = Path(bertsmith.__file__).parent
SECONDS, MEMORY = 2.0, 300 << 20
NUMBERS = (10**12, 10**400, -1, 0, 1e-300, 1e300)
MOST = 120  # numbers of one folder that are tried, spread over all of them

CHILD = """
import json, re, shutil, sys, time
from pathlib import Path
from bertsmith.errors import BertsmithError
from written_folders import WRITTEN

def mark(name):
    text = Path("/proc/self/status").read_text()
    return int(re.search(name + r":\\\\s*(\\\\d+) kB", text)[1]) * 1024

kind, cases, folder = sys.argv[1], json.loads(Path(sys.argv[2]).read_text()), Path(sys.argv[3])
read = WRITTEN[kind][1]
read(folder)
before, slow, other = mark("VmRSS"), [], []
for name, text in cases:
    path = folder / name
    kept = path.read_bytes()
    path.write_text(text)
    begun = time.process_time()
    try:
        read(folder)
    except BertsmithError as fault:
        if fault.exit_code not in (2, 71):
            other.append([name, text[-300:], str(fault.exit_code)])
    except Exception as fault:
        other.append([name, text[-300:], repr(fault)[:300]])
    seconds = time.process_time() - begun
    if seconds > float(sys.argv[4]):
        slow.append([name, text[-300:], seconds])
    path.write_bytes(kept)
print(json.dumps({"slow": slow, "other": other, "memory": mark("VmHWM") - before}))
"""


def leaves(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all numbers of a tree."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, one in inner:
        if isinstance(one, dict | list):
            yield from leaves(one, (*place, key))
        elif isinstance(one, int | float) and not isinstance(one, bool):
            yield (*place, key)


def with_number(text: str, place: tuple[Any, ...], number: Any) -> str:
    """The tree with another number in one place."""
    tree = json.loads(text)
    at = tree
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = number
    sys.set_int_max_str_digits(10_000)
    return json.dumps(tree)


def cases(folder: Path) -> list[tuple[str, str]]:
    """Files of a folder with one number changed."""
    found = []
    for path in sorted(folder.rglob("*.json")):
        text = path.read_text(encoding="utf-8")
        places = list(leaves(json.loads(text))) if len(text) < 1 << 20 else []
        for place in places[:: max(1, len(places) // 30)]:
            for number in NUMBERS:
                found.append((str(path.relative_to(folder)), with_number(text, place, number)))
    return found[:: max(1, len(found) // MOST)]


def run_child(kind: str, tried: list[tuple[str, str]], folder: Path, place: Path) -> dict[str, Any]:
    file = place / "cases.json"
    file.write_text(json.dumps(tried))
    arguments = [kind, str(file), str(folder), str(SECONDS)]
    run = subprocess.run(
        [sys.executable, "-c", CHILD, *arguments],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": ":".join(sys.path), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"},
        timeout=500,
    )
    assert run.returncode == 0, run.stderr[-2_000:]
    answer: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return answer


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's high-water mark")
@pytest.mark.parametrize("kind", WRITTEN)
def test_no_number_of_a_small_file_takes_time_or_memory(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    WRITTEN[kind][0](folder)
    for one in folder.rglob("hashes.json"):
        one.unlink()
    tried = cases(folder)
    assert tried
    answer = run_child(kind, tried, folder, tmp_path)
    assert not answer["other"], answer["other"][:5]
    assert not answer["slow"], answer["slow"][:5]
    assert answer["memory"] < MEMORY
