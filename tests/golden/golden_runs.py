"""Runs golden cases through the command line alone and hashes the numbers they end with.

    python tests/golden/golden_runs.py --check tests/golden/hashes.json
    python tests/golden/golden_runs.py --only 'pretrain/*' --write tests/golden/hashes.json

Every command is a child process with one thread, in fp32, by code paths that all x86-64 processors
have. It runs the sources of the tree that this file stands in.
"""

from __future__ import annotations

import argparse
import hashlib
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

import numpy as np
from golden_cases import (
    CASES,
    MODEL,
    STEPS,
    TINY,
    VOCABULARIES,
    Case,
    Finetuning,
    Pretraining,
    Vectors,
)
from golden_data import write_documents, write_rows, write_texts

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SECONDS = 600.0  # that one command may take
# Nothing of what changes code paths, threads or products is taken from outside.
DROPPED = ("ATEN_", "BERTSMITH_", "DNNL_", "GLIBC_", "GOLDEN_", "KMP_", "MKL_", "NPY_", "OMP_")
DROPPED += ("ONEDNN_", "PYTHON", "TORCH")
COMMON = ("--precision", "fp32", "--threads", "1")
SEED = ("--seed", "1")


RENAMED = {"cosine.": "likeness."}  # tensors: the name now, and at the commit of the hashes


class GoldenError(Exception):
    """A command of a golden run that failed, with what it said."""


class GoldenRuns:
    """Cases in a folder of their own; what several of them need is made once."""

    def __init__(self, work: Path) -> None:
        self.work = work
        work.mkdir(parents=True, exist_ok=True)
        self._hashes: dict[str, str] = {}

    def hash(self, name: str) -> str:
        """The hash of the numbers that a case ends with."""
        if name not in self._hashes:
            self._hashes[name] = self._run(name, CASES[name])
        return self._hashes[name]

    def _run(self, name: str, case: Case) -> str:
        out = self.work / name.replace("/", "-")
        if isinstance(case, Vectors):
            return self._vectors(case, out.with_suffix(".npy"))
        if isinstance(case, Pretraining):
            self._pretrain(case, out)
        else:
            self._finetune(case, out)
        return tensors_hash(out)

    def _vectors(self, case: Vectors, out: Path) -> str:
        texts = self.work / f"texts-{case.texts}.txt"
        write_texts(texts, case.texts)
        self._bertsmith("embed", MODEL, str(texts), "--out", str(out), *COMMON)
        found = np.load(out)
        if found.dtype != np.float32 or len(found) != case.texts:
            raise GoldenError(f"{out.name} holds {found.dtype} of shape {found.shape}")
        return hashlib.sha256(np.ascontiguousarray(found).tobytes()).hexdigest()

    def _pretrain(self, case: Pretraining, out: Path) -> None:
        corpus = self._corpus(case.words)
        self._bertsmith(
            *("pretrain", case.recipe, "--corpus", str(corpus), "--out", str(out)),
            *("--size", "tiny", "--steps", str(STEPS)),
            *_settings(TINY | dict(case.settings)),
            *(*COMMON, *SEED),
        )

    def _finetune(self, case: Finetuning, out: Path) -> None:
        self.hash("pretrain/bert")
        rows = self.work / f"rows-{case.rows}".replace(" ", "-")
        if not rows.exists():
            write_rows(rows, case.rows)
        self._bertsmith(
            *("finetune", str(rows), "--model", str(self.work / "pretrain-bert")),
            *("--out", str(out), "--epochs", str(case.epochs)),
            *(("--recipe", case.recipe) if case.recipe else ()),
            *case.options,
            *_settings(case.settings),
            *(*COMMON, *SEED, "--device", "cpu"),
        )

    def _corpus(self, words: str) -> Path:
        """Shards of generated documents, in a vocabulary learned from them."""
        shards, text = self.work / f"shards-{words}", self.work / f"{words}.txt"
        if shards.exists():
            return shards
        chinese = words == "chinese"
        write_documents(text, chinese=chinese)
        learned = str(self.work / f"vocabulary-{words}")
        self._bertsmith("vocab", "learn", str(text), "--out", learned, *VOCABULARIES[words])
        self._bertsmith(
            *("corpus", "build", str(text), "--vocab", learned, "--out", str(shards)),
            *("--form", "sentences", "--workers", "1"),
            *("--segmenter", "jieba" if chinese else "character"),
        )
        return shards

    def _bertsmith(self, *arguments: str) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "bertsmith", *arguments],
            env=environment(self.work / "cache"),
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


def environment(cache: Path) -> dict[str, str]:
    """Variables of a child: this tree's sources, one thread, what all x86-64 processors can do."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(DROPPED)}
    return kept | {
        "PYTHONPATH": os.pathsep.join([str(HERE / "guard"), str(ROOT / "src")]),
        "PYTHONUTF8": "1",
        "BERTSMITH_CACHE": str(cache),
        "BERTSMITH_OFFLINE": "1",
        "BERTSMITH_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "MKL_CBWR": "COMPATIBLE",
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


def tensors_hash(folder: Path) -> str:
    """sha256 over name, dtype, shape and bytes of every tensor in a model's folder, sorted.

    The folder's own weight files and those of a model inside it (ELECTRA's generator), but not
    checkpoints.
    """
    files = [*folder.glob("*.safetensors"), *folder.glob("generator/*.safetensors")]
    if not files:
        raise GoldenError(f"no weights came out in {folder.name}")
    found = [
        (_as_stored(name), *rest) for file in files for name, *rest in _tensors(file.read_bytes())
    ]
    total = hashlib.sha256()
    for name, dtype, shape, content in sorted(found):
        total.update(f"{name} {dtype} {shape} {len(content)}\n".encode())
        total.update(content)
    return total.hexdigest()


def _as_stored(name: str) -> str:
    """The name that a tensor had when the hashes were made."""
    for now, before in RENAMED.items():
        if name.startswith(now):
            return before + name.removeprefix(now)
    return name


def _tensors(raw: bytes) -> list[tuple[str, str, str, bytes]]:
    """What a safetensors file holds: a length, a header in JSON, then bytes."""
    begin = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:begin])
    header.pop("__metadata__", None)
    found = []
    for name, about in header.items():
        start, end = about["data_offsets"]
        if start == end:  # an empty tensor marks a head that transformers does not have
            continue
        found.append((name, about["dtype"], str(about["shape"]), raw[begin + start : begin + end]))
    return found


def _settings(settings: Mapping[str, str]) -> list[str]:
    return [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]


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


def origin() -> dict[str, str]:
    """What the hashes made now hang on, and where they come from."""
    command = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
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
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--write", type=Path, metavar="FILE", help="keep the hashes there")
    what.add_argument("--check", type=Path, metavar="FILE", help="compare with those kept there")
    given = parser.parse_args()
    names = chosen(given.only)
    kept = read(given.check) if given.check else {}
    with tempfile.TemporaryDirectory(prefix="golden-") as scratch:
        runs = GoldenRuns((given.work or Path(scratch)).resolve())
        wrong = _told(runs, names, kept)
        if given.write:
            old = read(given.write) if given.only and given.write.exists() else {}
            new = {name: {"sha256": runs.hash(name), **origin()} for name in names}
            merged = {name: (old | new)[name] for name in CASES if name in old | new}
            given.write.write_text(json.dumps(merged, indent=1) + "\n", encoding="utf-8")
    if given.check:
        sys.stdout.write(f"{len(names) - wrong} of {len(names)} cases came out as kept\n")
    return int(bool(given.check and wrong))


if __name__ == "__main__":
    sys.exit(main())
