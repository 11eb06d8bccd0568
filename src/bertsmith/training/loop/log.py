"""The log of a run: one JSON object per line, written at once, no step twice."""

from __future__ import annotations

import errno
import importlib.util
import json
import logging
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Protocol

from pydantic import Field

from bertsmith.config import Settings
from bertsmith.errors import WriteError
from bertsmith.files.strict_json import json_values

log = logging.getLogger(__name__)

_LAST_WORDS = frozenset({"final", "end"})


class LogSettings(Settings):
    """How many steps share a line, and whether TensorBoard files are written as well."""

    every: Annotated[int, Field(gt=0)] = 10
    tensorboard: bool = True  # only if the package is installed


class RunLog:
    """`log.jsonl` of a run, cut back to the checkpoint that the run resumes from."""

    def __init__(self, path: Path, *, step: int) -> None:
        self.path = path
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
            self._descriptor = os.open(path, flags, 0o666)
            try:
                os.ftruncate(self._descriptor, _keep(path, step))
            except BaseException:
                os.close(self._descriptor)
                raise
        except OSError as fault:
            raise self._failed(fault, 0) from fault

    def write(self, kind: str, values: Mapping[str, Any]) -> None:
        """Append a line; what is not finite is null."""
        line = json.dumps(json_values({"kind": kind, **values}), ensure_ascii=False)
        data = f"{line}\n".encode()
        try:
            done = os.write(self._descriptor, data)
            while done < len(data):
                done += os.write(self._descriptor, data[done:])
        except OSError as fault:
            raise self._failed(fault, len(data)) from fault

    def sync(self) -> None:
        """Bring all lines to the disk, before a checkpoint is written."""
        try:
            os.fsync(self._descriptor)
        except OSError as fault:
            raise self._failed(fault, 0) from fault

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def _failed(self, fault: OSError, needed: int) -> WriteError:
        reason = (fault.strerror or str(fault)).lower()
        message = f"cannot write {self.path}: {reason}"
        if fault.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):
            free = shutil.disk_usage(self.path.parent).free
            message += f"; {needed:,} bytes needed, {free:,} free"
        return WriteError(f"{message}; the checkpoints are untouched")


class Board(Protocol):
    """Where curves are drawn from."""

    def add_scalar(self, tag: str, value: float, step: int) -> Any:
        """One point of a curve."""

    def close(self) -> Any:
        """Write what is left."""


def open_board(folder: Path, *, step: int) -> Board | None:
    """A writer of TensorBoard files, if the package is installed."""
    if importlib.util.find_spec("tensorboard") is None:
        return None
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(folder), purge_step=step)


def _keep(path: Path, step: int) -> int:
    """The length of the part that belongs to the first `step` steps: whole lines, in order."""
    length = 0
    with path.open("rb") as file:
        for raw in file:
            if not raw.endswith(b"\n"):
                break
            try:
                line = json.loads(raw)
                belongs = line["step"] <= step and line["kind"] not in _LAST_WORDS
            except (ValueError, KeyError, TypeError):
                log.warning("%s: unreadable after byte %d; cut there", path, length)
                break
            if not belongs:
                break
            length += len(raw)
    return length
