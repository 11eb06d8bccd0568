"""Trains the toy with its weights sharded by FSDP2 over a group of one, in a process of its own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from toy_training import toy_run

from bertsmith.training.loop import train
from bertsmith.training.optimizers import LambSettings
from bertsmith.training.progress import Progress
from bertsmith.training.work import SingleRank


class Sharded(SingleRank):
    """A group of one whose weights come together for evaluation."""

    @contextmanager
    def whole(self, model: nn.Module) -> Iterator[None]:
        yield
        model.reshard()


def main(folder: Path, optimizer: str) -> None:
    torch.set_num_threads(1)
    store = dist.FileStore(str(folder / "store"), 1)
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    mesh = init_device_mesh("cpu", (1,))
    for name, end in (("straight", 0), ("cut", 12), ("cut", 0)):
        run = toy_run(folder / name, ranks=Sharded())
        if optimizer == "lamb":
            run = replace(run, optimizer=LambSettings(lr=5e-3))
        fully_shard(run.model, mesh=mesh)

        def watch(look: Progress, end: int = end) -> None:
            if look.step == end:
                raise KeyboardInterrupt

        try:
            train(replace(run, watch=watch))
        except KeyboardInterrupt:
            sys.stdout.write("interrupted\n")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
