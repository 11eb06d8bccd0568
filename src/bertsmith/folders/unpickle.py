"""Pickled weights on explicit request: a child process turns them into safetensors."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from bertsmith.errors import FolderError, UnsafeFileError
from bertsmith.files.safe_folder import MEGABYTE, Folder
from bertsmith.folders import pickle_child
from bertsmith.folders.tensors import INDEX, SINGLE, Weights, no_weights, open_weights, weight_map
from bertsmith.hardware.environment import inherited

PICKLE = "pytorch_model.bin"
PICKLE_INDEX = "pytorch_model.bin.index.json"
SIZE_LIMIT = 64 << 30


@contextmanager
def open_pickled(folder: Folder) -> Iterator[Weights]:
    """The weights of a folder, pickles allowed; they pass through a private temporary folder."""
    if folder.has(SINGLE) or folder.has(INDEX):
        with open_weights(folder) as weights:
            yield weights
        return
    with TemporaryDirectory(prefix="bertsmith-unpickle-") as temporary:
        safe = Path(temporary)
        if folder.has(PICKLE):
            unpickle(folder, PICKLE, safe / SINGLE, source=None)
        elif folder.has(PICKLE_INDEX):
            _unpickle_shards(folder, safe)
        else:
            raise no_weights(folder)
        with open_weights(Folder.at(safe)) as weights:
            yield weights


def unpickle(folder: Folder, name: str, out: Path, *, source: str | None) -> None:
    """Write the tensors of one pickle to `out` as safetensors, by a child process under limits."""
    where = folder.path / name
    with folder.open(name, source=source) as file:
        size = os.fstat(file.fileno()).st_size
        if not 0 < size <= SIZE_LIMIT:
            raise FolderError(f"{where} has {size:,} bytes; that is not a file of weights")
        memory = 4 * size + 512 * MEGABYTE
        seconds = 60 + size // (10 * MEGABYTE)
        command = [sys.executable, "-I", pickle_child.__file__, str(out), str(memory), str(seconds)]
        kept = {key: value for key, value in inherited().items() if key in _ENVIRONMENT}
        try:
            done = subprocess.run(
                command,
                stdin=file.fileno(),
                capture_output=True,
                timeout=2 * seconds,
                env=kept,
                cwd=out.parent,
                check=False,
            )
        except subprocess.TimeoutExpired as fault:
            raise UnsafeFileError(f"{where} took more than {2 * seconds} s to read") from fault
    _check_answer(done, where, out)


_ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR", "TEMP")


def _check_answer(done: subprocess.CompletedProcess[bytes], where: Path, out: Path) -> None:
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        raise UnsafeFileError(
            f"{where}: reading it ended with {name}; the file is damaged or hostile"
        )
    try:
        answer = json.loads(done.stdout[-4096:].decode("utf-8", "replace").splitlines()[-1])
    except (ValueError, IndexError):
        answer = {}
    if done.returncode == 0 and isinstance(answer, dict) and "tensors" in answer and out.is_file():
        return
    reason = answer.get("error") if isinstance(answer, dict) else None
    if not isinstance(reason, str):
        lines = done.stderr[-2000:].decode("utf-8", "replace").strip().splitlines()
        reason = lines[-1] if lines else f"exit code {done.returncode}"
    printable = "".join(c if c.isprintable() else "?" for c in reason[:400])
    raise UnsafeFileError(
        f"{where} is not a plain file of tensors and was refused: {printable}; "
        "take the model in safetensors form"
    )


def _unpickle_shards(folder: Folder, safe: Path) -> None:
    """Turn each pickled shard and the index into safetensors of the same division."""
    places = weight_map(folder, PICKLE_INDEX)
    new_names = {
        shard: f"{number:05d}.safetensors" for number, shard in enumerate(set(places.values()))
    }
    for shard, new in new_names.items():
        unpickle(folder, shard, safe / new, source=PICKLE_INDEX)
    index = {"weight_map": {tensor: new_names[shard] for tensor, shard in places.items()}}
    (safe / INDEX).write_text(json.dumps(index), encoding="utf-8")
