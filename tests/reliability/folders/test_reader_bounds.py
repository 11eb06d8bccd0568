"""Numbers of small files have bounds: no folder takes more than 2 s or 300 MB to be refused.

Every number of every JSON file of every kind of folder is made huge, tiny, negative and of another
type, one at a time. A kind of folder that is not here fails the test.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from written_folders import READ_ONLY, WRITTEN

from bertsmith.folders.kinds import KINDS

pytestmark = pytest.mark.reliability
MEMORY = 300 << 20
NUMBERS = (10**12, 10**400, -1, 0, 1e-300, 1e300)
MOST = 120  # numbers of one folder that are tried, spread over all of them

CHILD = r"""
import json, re, sys, time
from pathlib import Path
from bertsmith.errors import BertsmithError
from written_folders import READ_ONLY, WRITTEN

def mark(name):
    text = Path("/proc/self/status").read_text()
    return int(re.search(name + r":\s*(\d+) kB", text)[1]) * 1024

def tried(read, folder, name, text):
    path = folder / name
    kept = path.read_bytes()
    path.write_text(text)
    begun, fault = time.process_time(), None
    try:
        read(folder)
    except BertsmithError as error:
        fault = None if error.exit_code in (2, 71) else str(error.exit_code)
    except Exception as error:
        fault = repr(error)[:300]
    seconds = time.process_time() - begun
    path.write_bytes(kept)
    return fault, seconds

for place in map(Path, sys.argv[1:]):
    kind, folder = place.name, place / "folder"
    read, slow, other = WRITTEN[kind][1], [], []
    read(folder)
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark begins anew
    before = mark("VmRSS")
    for name, what, text in json.loads((place / "cases.json").read_text()):
        fault, seconds = tried(read, folder, name, text)
        other += [] if fault is None else [[name, what, fault]]
        slow += [] if seconds < 2.0 else [[name, what, seconds]]
    print(json.dumps([kind, {"slow": slow, "other": other, "memory": mark("VmHWM") - before}]))
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
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(10_000)
    try:
        return json.dumps(tree)
    finally:
        sys.set_int_max_str_digits(before)


def cases(folder: Path) -> list[tuple[str, str, str]]:
    """A file of a folder, what is changed in it, and its text with that one number changed."""
    found = []
    for path in sorted(folder.rglob("*.json")):
        text = path.read_text(encoding="utf-8")
        places = list(leaves(json.loads(text))) if len(text) < 1 << 20 else []
        for place in places[:: max(1, len(places) // 30)]:
            name = str(path.relative_to(folder))
            for number in NUMBERS:
                what = f"{'.'.join(map(str, place))} = {str(number)[:20]}"
                found.append((name, what, with_number(text, place, number)))
    return found[:: max(1, len(found) // MOST)]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What one process took to read the changed folders of each kind."""
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("reads Linux's high-water mark")
    root = tmp_path_factory.mktemp("bounds")
    for kind, (make, _) in WRITTEN.items():
        folder = root / kind / "folder"
        folder.parent.mkdir()
        make(folder)
        (folder / "hashes.json").unlink(missing_ok=True)
        (root / kind / "cases.json").write_text(json.dumps(cases(folder)))
    run = subprocess.run(
        [sys.executable, "-c", CHILD, *(str(root / kind) for kind in WRITTEN)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": ":".join(sys.path)},
        timeout=600,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2_000:]
    return dict(json.loads(line) for line in run.stdout.splitlines())


@pytest.mark.parametrize("kind", WRITTEN)
def test_no_number_of_a_small_file_takes_time_or_memory(kind: str, answers: dict[str, Any]) -> None:
    answer = answers[kind]
    assert not answer["other"], answer["other"][:8]
    assert not answer["slow"], answer["slow"][:8]
    assert answer["memory"] < MEMORY


def test_every_kind_of_folder_is_here() -> None:
    assert {*WRITTEN, *READ_ONLY} >= set(KINDS)  # test_hdf5_hostile.py has the published ELMo
