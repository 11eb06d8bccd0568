"""How a run is executed: device, processes, number format, memory and stop requests."""

from __future__ import annotations

import ctypes
import logging
import platform
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import torch
from pydantic import Field
from torch import distributed, nn

from bertsmith.files.safe_folder import Folder
from bertsmith.hardware.devices import torch_device
from bertsmith.hardware.environment import MOST_THREADS
from bertsmith.nn.block import Block, DecoderBlock
from bertsmith.training.checkpoints.checkpoint import CHECKPOINTS, Checkpoints
from bertsmith.training.checkpoints.checkpoint_files import is_whole, read_manifest
from bertsmith.training.execution.precision import FP32, PrecisionPath, Wanted, choose_precision
from bertsmith.training.execution.ranks import Ranks, RankSettings, join
from bertsmith.training.execution.stop import StopRequest

log = logging.getLogger(__name__)

Some = Annotated[int, Field(ge=1, le=MOST_THREADS)]
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4  # from malloc.h of glibc
_NEVER = 2**31 - 1
_PAD = 64 << 20


class RunSettings(RankSettings):
    """The section `run` of every recipe."""

    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    precision: Wanted = "auto"
    threads: Some | None = None
    devices: Some = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """Device, processes, how numbers are multiplied, and stop requests."""

    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    ranks: Ranks = field(default_factory=Ranks)
    stop: StopRequest = field(default_factory=StopRequest)
    precision: PrecisionPath = field(
        default_factory=lambda: PrecisionPath(name=FP32, reason="the plain way")
    )

    def prepare(self, model: nn.Module) -> None:
        """Bring a model here: to the device, to the number format, to all ranks."""
        model.to(self.device)
        self.precision.prepare(model)
        self.ranks.prepare(model)

    def close(self) -> None:
        """Leave the other processes."""
        self.ranks.close()


def choose_execution(
    settings: RunSettings,
    out: Path | None = None,
    *,
    device: str | None = None,
    stop: StopRequest | None = None,
) -> Execution:
    """A GPU if there is one, and the number format of the last checkpoint in `out`.

    `device` names another device than that.
    """
    where = _default_device() if device is None else torch_device(device)
    precision = choose_precision(
        settings.precision, where, before=None if out is None else recorded_path(out)
    )
    ranks = join(settings, device=where, sharded=(Block, DecoderBlock))
    return Execution(device=where, ranks=ranks, precision=precision, stop=stop or StopRequest())


def _default_device() -> torch.device:
    device = torch.device("cpu")
    if torch.cuda.is_available():
        local = distributed.get_node_local_rank() if is_one_of_many() else 0
        device = torch.device("cuda", local)
        torch.cuda.set_device(device)
    return device


def is_one_of_many() -> bool:
    """Whether a launcher started this process."""
    return distributed.is_available() and distributed.is_torchelastic_launched()


def recorded_path(out: Path) -> str | None:
    """The precision of the newest whole checkpoint of a run, if there is one."""
    checkpoints = Checkpoints(out / CHECKPOINTS)
    for step in reversed(checkpoints.steps()):
        path = checkpoints.path(step)
        if is_whole(path):
            settings = read_manifest(Folder.at(path)).get("settings")
            name = settings.get("precision") if isinstance(settings, dict) else None
            return name if isinstance(name, str) else None
    return None


def keep_freed_memory() -> bool:
    """Have glibc hand out large blocks again instead of returning them to the system.

    A training step allocates the same tensors each time. By default each one above 32 MB is mapped
    anew and faulted in page by page: 17 % of a tiny step in one profile. Some systems fault anyway.
    Returns whether it was done.
    """
    if sys.platform != "linux" or platform.libc_ver()[0] != "glibc":
        return False
    libc = ctypes.CDLL(None)
    wanted = ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, _NEVER), (_TOP_PAD, _PAD))
    done = all(libc.mallopt(option, value) == 1 for option, value in wanted)
    if not done:
        log.info("the memory allocator took no advice; training is somewhat slower")
    return done
