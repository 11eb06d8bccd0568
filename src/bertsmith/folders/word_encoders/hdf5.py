"""Tensors of an hdf5 file, read by a child process that can be stopped and opens nothing else."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bertsmith.errors import MissingExtraError, TensorMismatchError
from bertsmith.files.safe_folder import Folder
from bertsmith.folders.word_encoders import hdf5_child
from bertsmith.hardware.environment import inherited

if TYPE_CHECKING:
    from torch import Tensor

Shapes = Mapping[str, tuple[int, ...]]
ANSWER = 4_096  # bytes of its first line
SECONDS = 20  # to start and to look around
RATE = 5 << 20  # bytes a second, at the least
KEPT = ("PATH", "LD_LIBRARY_PATH", "TMPDIR")


def read_hdf5(folder: Folder, name: str, shapes: Shapes, *, source: str) -> dict[str, Tensor]:
    """The datasets of these names and shapes as float32; `source` says which ones there are.

    Refused with the file and what is wrong: datasets that are missing, of another shape, not
    finite, not stored whole in the file itself, and all that the library of hdf5 cannot read.
    """
    if importlib.util.find_spec("h5py") is None:
        raise MissingExtraError("h5py", "elmo")
    where = folder.path / name
    with folder.open(name, source=source) as file:
        size = os.fstat(file.fileno()).st_size
        needed = sum(4 * math.prod(shape) for shape in shapes.values())
        if needed > 2 * hdf5_child.EXPANSION * size:  # half precision, packed
            raise TensorMismatchError(
                f"{where} has {size:,} bytes, and {source} asks for {needed:,} bytes of tensors; "
                f"{source} and weights must be of one model"
            )
        seconds = SECONDS + needed // RATE
        wanted = json.dumps([[one, list(shape)] for one, shape in shapes.items()])
        command = [sys.executable, "-I", hdf5_child.__file__, wanted, str(seconds)]
        environment = {key: value for key, value in inherited().items() if key in KEPT}
        environment["HDF5_USE_FILE_LOCKING"] = "FALSE"  # it is only read
        with subprocess.Popen(
            command,
            stdin=file.fileno(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        ) as child:
            try:
                return _tensors(child, where, shapes, source)
            finally:
                child.kill()


def _tensors(
    child: subprocess.Popen[bytes], where: Path, shapes: Shapes, source: str
) -> dict[str, Tensor]:
    """What the child answers; its own limits end it if it takes too long."""
    import torch

    stream = child.stdout
    if stream is None:
        raise TypeError("the output of the child is a pipe")
    line = stream.readline(ANSWER)
    try:
        answer = json.loads(line)
    except ValueError:
        answer = {}
    if "bytes" not in answer:
        raise _refused(child, answer.get("error"), where, source)
    found = {}
    for name, shape in shapes.items():
        block = stream.read(4 * math.prod(shape))
        values = np.frombuffer(block, dtype="<f4").copy()
        if values.size != math.prod(shape):
            raise _refused(child, "its reader ended early", where, source)
        if not np.isfinite(values).all():
            raise TensorMismatchError(f"{where}: tensor {name} holds values that are not finite")
        found[name] = torch.from_numpy(values.reshape(shape))
    return found


def _refused(
    child: subprocess.Popen[bytes], reason: object, where: Path, source: str
) -> TensorMismatchError:
    """The error for a file that the child did not read."""
    code = child.wait()
    if not isinstance(reason, str):
        ended = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        reason = f"it cannot be read: its reader ended with {ended}"
    text = "".join(c if c.isprintable() else "?" for c in reason[:400])
    return TensorMismatchError(
        f"{where}: {text}; {source} and weights must be of one model: copy both anew"
    )
