"""B8, B9, A5: the same under -O, without network or home; files reach the disk in order."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from folder_making import tiny_folder

pytestmark = pytest.mark.reliability

HERE = Path(__file__).parent


def run(code: str, *flags: str, **changes: str | None) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter; a change of None removes a variable."""
    variables = {**os.environ, **{k: v for k, v in changes.items() if v is not None}}
    for name in [name for name, value in changes.items() if value is None]:
        variables.pop(name, None)
    return subprocess.run(
        [sys.executable, *flags, "-c", code],
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_reading_writing_and_converting_open_no_connection_even_without_a_home(
    tmp_path: Path,
) -> None:
    folder = tiny_folder(tmp_path / "m")
    code = f"""
import sys
heard = []
def hook(event, given):
    if event.startswith("socket."):
        heard.append((event, given))
sys.addaudithook(hook)
from pathlib import Path
from bertsmith.folders.convert import convert
from bertsmith.folders.describe import describe
from bertsmith.folders.read import load_model
load_model({str(folder)!r})
load_model("all-MiniLM-L6-v2")
describe("all-MiniLM-L6-v2")
convert({str(folder)!r}, Path({str(tmp_path / "out")!r}), check=True)
assert heard == [], heard
"""
    done = run(code, HOME=None, XDG_CACHE_HOME=None, HF_HOME=None, HF_HUB_OFFLINE=None)
    assert done.returncode == 0, done.stderr


def test_an_unknown_name_asks_nobody_when_offline(tmp_path: Path) -> None:
    code = """
import sys
heard = []
sys.addaudithook(lambda event, given: heard.append(event) if "socket" in event else None)
from bertsmith.errors import FolderError
from bertsmith.folders.read import load_model
try:
    load_model("org/unknown")
except FolderError as fault:
    assert "offline" in str(fault)
else:
    raise SystemExit("not refused")
if heard:
    raise SystemExit(str(heard))
"""
    done = run(code, BERTSMITH_OFFLINE="1", HOME=None)
    assert done.returncode == 0, done.stderr


def test_an_unusual_locale_changes_nothing(tmp_path: Path) -> None:
    folder = tiny_folder(tmp_path / "模型 ünïcode")
    code = f"""
import os
from pathlib import Path
from bertsmith.folders.convert import convert
from bertsmith.folders.read import load_model
source = os.fsdecode({os.fsencode(folder)!r})
loaded = load_model(source)
print(loaded.tokenizer.encode("a \\u5b57").ids.tolist())
convert(source, Path(os.fsdecode({os.fsencode(tmp_path / "输出")!r})), check=True)
"""
    done = run(code, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", PYTHONHASHSEED="7")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [2, 5, 11, 3]


OPTIMIZED = """
import json, os, sys, tempfile
from pathlib import Path
from folder_making import tiny_folder, tiny_shapes
from hostile_pickles import hostile_pickles
from test_folders_path_escapes import NAMES, TRICKS
from test_folders_safetensors import HOSTILE
from bertsmith.errors import FolderError
from bertsmith.folders.read import load_model

if __debug__:
    raise SystemExit("not optimized")
here = Path(tempfile.mkdtemp(dir=sys.argv[1]))
marker = here / "executed"
refused = 0

def refuses(path):
    global refused
    try:
        load_model(path)
    except FolderError:
        refused += 1
    else:
        raise SystemExit(f"{path} was loaded")

folder = tiny_folder(here / "weights")
load_model(folder)
for content in [*HOSTILE.values(), *hostile_pickles(marker).values()]:
    (folder / "model.safetensors").write_bytes(content)
    refuses(folder)
(folder / "model.safetensors").unlink()
for name in NAMES:
    index = json.dumps({"weight_map": dict.fromkeys(tiny_shapes(), name)})
    (folder / "model.safetensors.index.json").write_text(index)
    refuses(folder)
secrets = tiny_folder(here / "secrets")
for number, trick in enumerate(TRICKS):
    folder = tiny_folder(here / str(number))
    trick(folder, secrets)
    refuses(folder)
if marker.exists():
    raise SystemExit("executed")
print(refused)
"""


@pytest.mark.slow
def test_every_refusal_holds_when_python_drops_its_asserts(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-O", "-W", "error", "-c", OPTIMIZED, tmp_path],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout) > 100


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_every_file_reaches_the_disk_before_the_rename_that_shows_it(tmp_path: Path) -> None:
    folder = tiny_folder(tmp_path / "m")
    code = (
        "from pathlib import Path\n"
        "from bertsmith.folders.convert import convert\n"
        f"convert({str(folder)!r}, Path({str(tmp_path / 'out')!r}))\n"
    )
    log = tmp_path / "log"
    calls = "openat,fsync,fdatasync,rename,renameat,renameat2,close"
    done = subprocess.run(
        [
            "strace",
            "-f",
            "--seccomp-bpf",
            "-y",
            "-e",
            f"trace={calls}",
            "-o",
            log,
            sys.executable,
            "-c",
            code,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if "ptrace" in done.stderr and done.returncode:
        pytest.skip("strace may not trace here")
    assert done.returncode == 0, done.stderr
    lines = log.read_text(errors="replace").splitlines()
    staged = re.compile(r"rename\w*\(.*?\"([^\"]+)\", .*?\"([^\"]+)\"")
    renames = [(n, *m.groups()) for n, line in enumerate(lines) if (m := staged.search(line))]
    final = next((n, old) for n, old, new in renames if new == str(tmp_path / "out"))
    place, old = final
    synced = {
        m.group(1) for line in lines[:place] if (m := re.search(r"fsync\(\d+<([^>]+)>", line))
    }
    written = {
        str(path.relative_to(tmp_path / "out"))
        for path in (tmp_path / "out").rglob("*")
        if path.is_file()
    }
    missing = {name for name in written if f"{old}/{name}" not in synced}
    assert not missing
    assert old in synced
    after = "\n".join(lines[place:])
    assert re.search(rf"fsync\(\d+<{re.escape(str(tmp_path))}>", after)
