"""Runs golden cases through the command line alone and hashes the numbers they end with.

    python tests/golden/golden_runs.py --check tests/golden/hashes.json
    python tests/golden/golden_runs.py --only 'pretrain/*' 'lm/*' --write tests/golden/hashes.json
    python tests/golden/golden_runs.py --tree ../other --work out --check tests/golden/hashes.json

Every command is a child process with one thread, in fp32, by code paths that all x86-64 processors
have. It runs the sources of the tree that this file stands in, or those of --tree; the table of
cases is always that of this file. --work keeps what is made: where records differ, compare the
texts called records-* of two such folders.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from importlib.metadata import version
from pathlib import Path

from golden_cases import CASES
from golden_commands import PLACE, Case, Command
from golden_data import write_documents, write_rows, write_texts
from golden_files import write_file
from golden_hashes import GoldenError, array_hash, files_hash, output_hash, tensors_hash
from golden_records import record_hash, record_lines

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SECONDS = 600.0  # that one command may take
# Nothing of what changes code paths, threads or products is taken from outside.
DROPPED = ("ATEN_", "BERTSMITH_", "DNNL_", "GLIBC_", "GOLDEN_", "KMP_", "MKL_", "NPY_", "OMP_")
DROPPED += ("ONEDNN_", "OPENBLAS_", "PYTHON", "TORCH")


class GoldenRuns:
    """Cases in a folder of their own; what several of them need is made once.

    `tree` is the root of the sources that run.
    """

    def __init__(self, work: Path, tree: Path = ROOT) -> None:
        self.work = work
        self.tree = tree
        work.mkdir(parents=True, exist_ok=True)
        self._hashes: dict[str, str] = {}

    def hash(self, name: str) -> str:
        """The hash of the numbers that a case ends with."""
        if name not in self._hashes:
            self._hashes[name] = self._run(name, CASES[name])
        return self._hashes[name]

    def _run(self, name: str, case: Case) -> str:
        if not isinstance(case, Command):
            self.hash(case.of)
            lines = "\n".join(record_lines(self._folder(case.of), self.work))
            self._folder(name).with_suffix(".txt").write_text(lines + "\n", encoding="utf-8")
            return record_hash(self._folder(case.of), self.work)
        out = self._folder(name)
        if "{out}/" in case.line:
            out.mkdir()
        filled = [
            PLACE.sub(lambda found: self._place(name, *found.groups()), argument)
            for argument in case.arguments
        ]
        printed = self._bertsmith(*filled)
        if case.counts == "array":
            return array_hash(out.with_suffix(".npy"))
        if case.counts == "tensors":
            return tensors_hash(out)
        if case.counts == "files":
            return files_hash(out, case.files, self.work)
        out.with_suffix(".txt").write_text(printed, encoding="utf-8")
        return output_hash(printed, self.work)

    def _folder(self, name: str) -> Path:
        return self.work / name.replace("/", "-")

    def _place(self, case: str, kind: str, name: str) -> str:
        """What stands for a place in braces, made if it is not there yet."""
        if kind == "out":
            return str(self._folder(case))
        if kind == "case":
            self.hash(name)
            return str(self._folder(name))
        if kind == "rows":
            path = self.work / f"rows-{name}"
            if not path.exists():
                write_rows(path, name.replace("-", " "))
        elif kind == "texts":
            path = self.work / f"texts-{name}.txt"
            write_texts(path, int(name))
        elif kind == "documents":
            path = self.work / f"{name}.txt"
            if not path.exists():
                write_documents(path, chinese=name == "chinese")
        else:
            path = self.work / name
            write_file(path)
        return str(path)

    def _bertsmith(self, *arguments: str) -> str:
        """What it printed."""
        done = subprocess.run(
            [sys.executable, "-m", "bertsmith", *arguments],
            env=environment(self.work / "cache", self.tree),
            cwd=self.work,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=SECONDS,
            check=False,
        )
        if done.returncode:
            said = (done.stderr + done.stdout)[-3000:]
            raise GoldenError(
                f"bertsmith {' '.join(arguments)}\nended with {done.returncode}: {said}"
            )
        if "onednn-fp32" in done.stderr:
            raise GoldenError(f"bertsmith {arguments[0]} chose other products than torch's own")
        return done.stdout


def environment(cache: Path, tree: Path = ROOT) -> dict[str, str]:
    """Variables of a child: a tree's sources, one thread, what all x86-64 processors can do."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(DROPPED)}
    return kept | {
        "PYTHONPATH": os.pathsep.join([str(HERE / "guard"), str(tree / "src")]),
        "PYTHONUTF8": "1",
        "BERTSMITH_CACHE": str(cache),
        "BERTSMITH_OFFLINE": "1",
        "BERTSMITH_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "MKL_CBWR": "COMPATIBLE",
        "OPENBLAS_CORETYPE": "Nehalem",
        "OPENBLAS_NUM_THREADS": "1",
        "ATEN_CPU_CAPABILITY": "default",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "NPY_DISABLE_CPU_FEATURES": " ".join(_numpy_paths()),
        # The C library's own exp, log and so on, without fused multiply-add.
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX2_Usable,-FMA_Usable,-FMA4_Usable",
        "CUDA_VISIBLE_DEVICES": "",
        "NO_COLOR": "1",
    }


def _numpy_paths() -> list[str]:
    """The instruction sets that numpy would choose from, beyond those it always needs."""
    names = ("numpy._core._multiarray_umath", "numpy.core._multiarray_umath")  # 2, 1
    found = [getattr(sys.modules.get(name), "__cpu_dispatch__", []) for name in names]
    return [path for paths in found for path in paths]


def chosen(patterns: Sequence[str]) -> list[str]:
    """The cases that are meant, by name or with * in it; all of them for none."""
    found = [name for name in CASES if not patterns or any(fnmatchcase(name, p) for p in patterns)]
    if not found:
        raise SystemExit(f"no case is called {' or '.join(patterns)}; there are {', '.join(CASES)}")
    return found


def read(path: Path) -> dict[str, dict[str, str]]:
    """What was kept of each case: its hash, and the torch, commit and processor behind it."""
    kept: dict[str, dict[str, str]] = json.loads(path.read_text(encoding="utf-8"))
    return kept


def origin(tree: Path) -> dict[str, str]:
    """What the hashes made now hang on, and where they come from."""
    command = ["git", "-C", str(tree), "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return {"torch": version("torch"), "commit": done.stdout.strip(), "cpu": _cpu()}


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    about = dict(line.replace("\t", "").split(":", 1) for line in lines if ":" in line)
    parts = [about.get(key, "").strip() for key in ("model name", "cpu family", "model")]
    return f"{parts[0]}, family {parts[1]}, model {parts[2]}"


def _told(runs: GoldenRuns, names: Sequence[str], kept: Mapping[str, Mapping[str, str]]) -> int:
    """Run and compare, a line for each case; how many did not come out as kept."""
    wrong = 0
    for name in names:
        start = time.monotonic()
        try:
            found = runs.hash(name)
        except (GoldenError, subprocess.TimeoutExpired) as error:
            verdict = f"CANNOT RUN: {error}"
        else:
            before = kept.get(name, {})
            verdict = "same" if before.get("sha256") == found else f"DIFFERS: {found[:16]}"
            if not before:
                verdict = f"new: {found[:16]}"
            elif before["torch"] != version("torch"):
                verdict += f" (kept from torch {before['torch']}, this is {version('torch')})"
        wrong += not verdict.startswith("same")
        sys.stdout.write(f"{name:24} {time.monotonic() - start:5.1f} s  {verdict}\n")
        sys.stdout.flush()
    return wrong


def main() -> int:
    """The command line of this file."""
    parser = argparse.ArgumentParser(description="golden runs: are all numbers what they were?")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="cases, * allowed")
    parser.add_argument("--work", type=Path, help="a new folder that keeps all that is made")
    parser.add_argument(
        "--tree", type=Path, default=ROOT, metavar="DIR", help="the root of the sources that run"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--write", type=Path, metavar="FILE", help="keep the hashes there")
    what.add_argument("--check", type=Path, metavar="FILE", help="compare with those kept there")
    given = parser.parse_args()
    names = chosen(given.only)
    kept = read(given.check) if given.check else {}
    with tempfile.TemporaryDirectory(prefix="golden-") as scratch:
        runs = GoldenRuns((given.work or Path(scratch)).resolve(), given.tree.resolve())
        wrong = _told(runs, names, kept)
        if given.write:
            old = read(given.write) if given.only and given.write.exists() else {}
            new = {name: {"sha256": runs.hash(name), **origin(given.tree)} for name in names}
            merged = {name: (old | new)[name] for name in CASES if name in old | new}
            given.write.write_text(json.dumps(merged, indent=1) + "\n", encoding="utf-8")
    if given.check:
        sys.stdout.write(f"{len(names) - wrong} of {len(names)} cases came out as kept\n")
    return int(bool(given.check and wrong))


if __name__ == "__main__":
    sys.exit(main())
