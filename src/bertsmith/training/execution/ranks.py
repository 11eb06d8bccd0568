"""Processes that train together: gradients and counts are summed, so any number learns the same."""

from __future__ import annotations

import ctypes
import logging
import signal
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from functools import partial
from typing import Annotated, Literal, TypeVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch import distributed as dist
from torch.distributed.distributed_c10d import Store

from bertsmith.config import Settings
from bertsmith.errors import BertsmithError, ConfigError, LostRankError

log = logging.getLogger(__name__)

Result = TypeVar("Result")
BUCKET = 25 << 20  # bytes of small gradients that travel together
_PR_SET_PDEATHSIG = 1
_PATIENCE = 2.0  # seconds that a rank which is still there gets to notice a failure, too
LARGE = 1 << 20  # a gradient of so many bytes travels on its own, uncopied


class RankSettings(Settings):
    """How processes work together."""

    sharding: Literal["ddp", "fsdp"] = "ddp"
    timeout: Annotated[float, Field(gt=0)] = 600.0  # seconds to wait for the slowest rank


class Ranks:
    """The processes that train together, here one on its own; `DataParallel` has several.

    Every method is called by all of them.
    """

    world = 1  # how many processes there are
    rank = 0  # which of them this is
    is_first = True  # the one that writes files

    def sum_counts(self, counts: Mapping[str, float]) -> dict[str, float]:
        """Each number summed over all ranks in float64, hence exact for counts."""
        return dict(counts)

    def sum_gradients(self, model: nn.Module) -> None:
        """Replace each gradient by its sum (not its mean) over all ranks."""

    def gather_rows(self, rows: Tensor) -> Tensor:
        """The rows of all ranks in the order of ranks, without gradients: (n, ...) -> (N, ...)."""
        return rows.detach()

    def passes(self, own: int) -> int:
        """How many micro-batches this rank must run in a step, given how many it has."""
        return own

    def whole(self, model: nn.Module) -> AbstractContextManager[None]:
        """While entered, passes without gradients need no other rank."""
        return nullcontext()

    def watched(self) -> AbstractContextManager[None]:
        """While entered, a collective call that fails anywhere names the rank that is missing."""
        return nullcontext()

    def any(self, flag: bool) -> bool:
        """Whether the flag is set on any rank."""
        return flag

    def barrier(self) -> None:
        """Wait for all."""

    def prepare(self, model: nn.Module) -> None:
        """Make a model ready for training, before its optimizer is built."""

    def close(self) -> None:
        """Leave the group."""


class DataParallel(Ranks):
    """Every rank holds all weights; gradients are summed after a step's last backward pass."""

    def __init__(self, *, device: torch.device, timeout: float) -> None:
        """Joins the process group of the launcher; see `join`."""
        self.world: int = dist.get_world_size()
        self.rank: int = dist.get_rank()
        self.is_first: bool = self.rank == 0
        self._device = device
        self._timeout = timeout
        self._meetings = 0

    def prepare(self, model: nn.Module) -> None:
        """Give every rank the first one's weights."""
        with torch.no_grad():
            for tensor in [*model.parameters(), *model.buffers()]:
                self._meet("sharing the weights", partial(dist.broadcast, tensor.detach(), 0))

    def sum_counts(self, counts: Mapping[str, float]) -> dict[str, float]:
        """Each number added over all ranks in float64, hence exact for counts."""
        names = sorted(counts)
        # The names travel as a check sum: ranks that count different things must stop.
        check = float(zlib.crc32("\n".join(names).encode()) & 0xFFFFFF)  # its square is exact
        values = [float(counts[name]) for name in names]
        sums = torch.tensor([check, check * check, *values], dtype=torch.float64)
        sums = sums.to(self._device)
        self._meet("adding up counts", lambda: dist.all_reduce(sums))
        totals = sums.tolist()
        if totals[0] != check * self.world or totals[1] != check * check * self.world:
            raise BertsmithError(
                f"rank {self.rank} counts {names}, another rank something else; every rank must "
                "run the same version and the same settings"
            )
        return dict(zip(names, totals[2:], strict=True))

    def any(self, flag: bool) -> bool:
        """Whether the flag is set on any rank."""
        return self.sum_counts({"flag": float(flag)})["flag"] > 0

    def most(self, number: int) -> int:
        """The largest of the ranks' numbers."""
        largest = torch.tensor(number, dtype=torch.long, device=self._device)
        self._meet("comparing numbers", lambda: dist.all_reduce(largest, dist.ReduceOp.MAX))
        return int(largest)

    def barrier(self) -> None:
        """Wait for all."""
        self.sum_counts({})

    def sum_gradients(self, model: nn.Module) -> None:
        """Replace each gradient by its sum over all ranks, one that a rank lacks counting as 0."""
        parameters = [p for p in model.parameters() if p.requires_grad]
        here = torch.tensor([p.grad is not None for p in parameters], dtype=torch.uint8)
        here = here.to(self._device)
        self._meet("summing gradients", lambda: dist.all_reduce(here, dist.ReduceOp.MAX))
        gradients = []
        for parameter, used in zip(parameters, here.tolist(), strict=True):
            if used and parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            if parameter.grad is not None:
                gradients.append(parameter.grad)
        self._meet("summing gradients", lambda: _sum_all(gradients))

    def gather_rows(self, rows: Tensor) -> Tensor:
        """The rows of all ranks in the order of ranks, without gradients: (n, ...) -> (N, ...)."""
        own = {str(r): float(len(rows) if r == self.rank else 0) for r in range(self.world)}
        counts = self.sum_counts(own)
        sizes = [int(counts[str(rank)]) for rank in range(self.world)]
        padded = rows.detach().new_zeros(max(sizes), *rows.shape[1:])  # a gather needs equal shapes
        padded[: len(rows)] = rows.detach()
        parts = [torch.empty_like(padded) for _ in sizes]
        self._meet("gathering rows", lambda: dist.all_gather(parts, padded))
        return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])

    def close(self) -> None:
        """Leave the group."""
        if dist.is_initialized():
            dist.destroy_process_group()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """While entered, a collective call that fails anywhere names the rank that is missing."""
        try:
            yield
        except (RuntimeError, dist.DistError) as fault:
            if not isinstance(fault, dist.DistError) and "gloo" not in str(fault):
                raise
            raise self._lost("at work", fault) from fault

    def _meet(self, what: str, action: Callable[[], Result]) -> Result:
        """A collective call; if it fails, the error names the missing rank."""
        self._meetings += 1
        try:
            _store().set(_key(self.rank), str(self._meetings))
            return action()
        except (RuntimeError, dist.DistError) as fault:
            raise self._lost(what, fault) from fault

    def _lost(self, what: str, fault: Exception) -> LostRankError:
        return LostRankError(
            f"{what}, rank {self.rank} of {self.world} waited in vain for {self._missing()} "
            f"(time-out {self._timeout:g} s): it was killed, hangs, or lost its network; its own "
            f"log says more ({str(fault).splitlines()[0][:120]})"
        )

    def _missing(self) -> str:
        """The ranks with fewer collective calls than this one, or that do not report a failure.

        Calls inside a sharded model are not counted, so the second criterion decides there.
        """
        others = [rank for rank in range(self.world) if rank != self.rank]
        try:
            store = _store()
            store.set(_key(self.rank, "failed"), "1")
            met = {r: int(store.get(_key(r))) if store.check([_key(r)]) else 0 for r in others}
            late = [rank for rank in others if met[rank] < self._meetings]
            until = time.monotonic() + _PATIENCE
            while not late and time.monotonic() < until:
                silent = [r for r in others if not store.check([_key(r, "failed")])]
                if not silent:
                    break
                time.sleep(0.1)
            else:
                late = late or silent
        except (RuntimeError, dist.DistError):
            return "rank 0, whose store does not answer"
        if not late:
            return f"rank {' or '.join(map(str, others))}, which ended in this very call"
        return f"rank{'s' if len(late) > 1 else ''} {', '.join(map(str, late))}"


def join(
    settings: RankSettings, *, device: torch.device, sharded: Sequence[type[nn.Module]] = ()
) -> Ranks:
    """The ranks of this process: one, unless a launcher such as torchrun started it.

    `sharded` are the modules that FSDP2 shards one by one, the blocks of an encoder.
    """
    if not dist.is_available() or not dist.is_torchelastic_launched():
        if settings.sharding == "fsdp":
            log.info("one process has nothing to shard: sharding fsdp changes nothing")
        return Ranks()
    _end_with_launcher()
    backend = "nccl" if device.type == "cuda" else "gloo"
    try:
        dist.init_process_group(backend, timeout=timedelta(seconds=settings.timeout))
    except (RuntimeError, ValueError, dist.DistError) as fault:
        raise LostRankError(f"the ranks did not find each other: {fault}") from fault
    if settings.sharding == "fsdp" and dist.get_world_size() > 1:
        from bertsmith.training.execution.fully_sharded import FullySharded

        return FullySharded(device=device, timeout=settings.timeout, sharded=sharded)
    return DataParallel(device=device, timeout=settings.timeout)


def _sum_all(gradients: Sequence[Tensor]) -> None:
    """All-reduce in place; small tensors share buckets."""
    small: list[list[Tensor]] = [[]]
    size = 0
    waiting = []
    for gradient in gradients:
        amount = gradient.numel() * gradient.element_size()
        if amount >= LARGE and gradient.is_contiguous():
            waiting.append(dist.all_reduce(gradient, async_op=True))
            continue
        if small[-1] and (size + amount > BUCKET or small[-1][0].dtype != gradient.dtype):
            small.append([])
            size = 0
        small[-1].append(gradient)
        size += amount
    buckets = [torch.cat([g.reshape(-1) for g in bucket]) for bucket in small if bucket]
    waiting += [dist.all_reduce(bucket, async_op=True) for bucket in buckets]
    for work in waiting:
        if work is not None:
            work.wait()
    for summed, bucket in zip(buckets, [b for b in small if b], strict=True):
        start = 0
        for gradient in bucket:
            gradient.copy_(summed[start : start + gradient.numel()].view_as(gradient))
            start += gradient.numel()


def _end_with_launcher() -> None:
    """Be killed when the launcher is, so that none of its ranks is left behind."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL.value, 0, 0, 0)


def _store() -> Store:
    return dist.distributed_c10d._get_default_store()


def _key(rank: int, what: str = "meetings") -> str:
    return f"bertsmith/{what}/{rank}"


def refuse_sharding(ranks: Ranks, training: str) -> None:
    """Refuse sharded weights; `training` names what needs whole ones on every rank."""
    if ranks.world == 1:
        return
    from bertsmith.training.execution.fully_sharded import FullySharded  # slow to import

    if isinstance(ranks, FullySharded):
        ranks.barrier()  # else the first to leave is a lost rank to those that still begin
        raise ConfigError(
            f"{training} keeps all weights on every rank: run.sharding = fsdp is for "
            "pre-training; set it to ddp"
        )
