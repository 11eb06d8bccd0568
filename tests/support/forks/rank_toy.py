"""The toy run as one of several ranks, with faults that a test plants.

`run_rank(order, points)` runs in a process that a launcher or the fork server prepared; as a
program it reads the order from a file: `python rank_toy.py ORDER.json`. An order is a dict:

folder, steps, mode ("ddp" or "fsdp"), save (every how many steps), optimizer, timeout, pause;
texts_held_out (how many held-out texts each rank has);
die, stop: [rank, step, file]: SIGKILL or SIGSTOP in that step; once, if there is a file, in which
the rank leaves its process id;
break: [kind, rank, step, value] plants a number that is none;
sleep: seconds a rank at most waits before each file-system step;
precision: the name of a way to multiply; measure_first: evaluate before the first step.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from disk_points import HOOKED, Points
from torch import nn
from torch.distributed.tensor import DTensor
from toy_training import ToyBatch, ToyModel, ToyWork, toy_run, train_heeding_signals

from bertsmith.nn.loss import LossSum
from bertsmith.nn.matmul_backends import use_products
from bertsmith.training.checkpoints.checkpoint import SaveSettings
from bertsmith.training.execution import precision
from bertsmith.training.execution.execution import Execution
from bertsmith.training.execution.ranks import RankSettings, join
from bertsmith.training.loop.evaluate import Evaluation, EvaluationSettings
from bertsmith.training.loop.run import evaluate_run
from bertsmith.training.optimizers.optimizers import AdamWSettings, LambSettings, MuonSettings

TEXTS = 6
OPTIMIZERS = {
    "adamw": AdamWSettings(lr=5e-3),
    "lamb": LambSettings(lr=5e-3),
    "muon": MuonSettings(lr=5e-3, rest_lr=5e-3),
    # Where eps is large, the step is nearly proportional to the gradient, as in SGD.
    "proportional": AdamWSettings(lr=5.0, eps=1e3, weight_decay=0.0),
}


@dataclass(frozen=True)
class RankBatch(ToyBatch):
    step: int = -1


class RankWork(ToyWork):
    """A rank's neighbors among the texts of a step, and the faults of the order."""

    def __init__(self, order: dict[str, Any], rank: int, world: int) -> None:
        super().__init__(pause=order.get("pause", 0.0))
        self.order, self.rank, self.world = order, rank, world

    def micro_batches(self, step: int, share: float) -> list[ToyBatch]:
        first, last = (TEXTS * part // self.world for part in (self.rank, self.rank + 1))
        rows = [self._text(step * TEXTS + i) for i in range(first, last)]
        pairs = [rows[i : i + 2] for i in range(0, len(rows), 2)]
        return [self._tagged(pair, step) for pair in pairs]

    def held_out(self) -> list[ToyBatch]:
        cuts = [8 * part // self.world for part in range(self.world + 1)]
        each = self.order.get("texts_held_out", [b - a for a, b in pairwise(cuts)])
        first = 10_000_000 + sum(each[: self.rank])
        rows = [self._text(first + i) for i in range(each[self.rank])]
        return [self._tagged(rows[i : i + 2], -1) for i in range(0, len(rows), 2)]

    def loss(self, model: nn.Module, batch: Any) -> tuple[dict[str, LossSum], dict[str, Any]]:
        self._fault(batch.step)
        parts, scores = super().loss(model, batch)
        kind, rank, step, value = self.order.get("break", ["", 0, 0, 0.0])
        if (rank, step) == (self.rank, batch.step):
            word = parts["word"]
            if kind == "loss":
                parts["word"] = LossSum(word.sum * float(value), word.count)
            if kind == "gradient":
                poison = model.dense.weight.sum() * 0.0
                poison.register_hook(lambda grad: grad * float(value))
                parts["word"] = LossSum(word.sum + poison, word.count)
        return parts, scores

    def _fault(self, step: int) -> None:
        for name, number in (("die", signal.SIGKILL), ("stop", signal.SIGSTOP)):
            rank, at, *once = self.order.get(name, [-1, -1])
            if (rank, at) != (self.rank, step) or (once and Path(once[0]).exists()):
                continue
            if once:
                Path(once[0]).write_text(str(os.getpid()))
            os.kill(os.getpid(), number)

    def _tagged(self, rows: list[Any], step: int) -> RankBatch:
        batch = self._batch(rows, step)
        return RankBatch(batch.ids, batch.targets, batch.labels, step)


def run_rank(order: dict[str, Any], points: Points) -> dict[str, Any]:
    """Train to the end of the order; what came out."""
    torch.set_num_threads(1)
    settings = RankSettings(sharding=order.get("mode", "ddp"), timeout=order.get("timeout", 20.0))
    ranks = join(settings, device=torch.device("cpu"))
    model = ToyModel(dropout=0.0)
    if ranks.rank:
        with torch.no_grad():
            model.dense.weight.zero_()  # must come from the first rank
    if "precision" in order:
        use_products(model.dense, precision._products(order["precision"]))
    ranks.prepare(model)
    run = toy_run(
        Path(order["folder"]),
        steps=order.get("steps", 12),
        model=model,
        workload=RankWork(order, ranks.rank, ranks.world),
        execution=Execution(ranks=ranks),
        optimizer=OPTIMIZERS[order.get("optimizer", "adamw")],
        save=SaveSettings(every=order.get("save", 4)),
        evaluation=EvaluationSettings(every=4),
        watch=lambda look: _break_weight(order, model, look.step),
    )
    made, gathered = _watch_files(), _watch_gathering()
    points.install()
    _sleep_in_files(order, ranks.rank)
    first = evaluate_run(run) if order.get("measure_first") else None
    try:
        outcome = train_heeding_signals(run)
    finally:
        ranks.close()
    return {
        "code": outcome.exit_code,
        "step": outcome.step,
        "held_out": _plain(outcome.last),
        "first": _plain(first),
        "made": made,
        "gathered": max(gathered, default=0),
    }


def _plain(found: Evaluation | None) -> dict[str, Any] | None:
    return None if found is None else found.to_json()


def _break_weight(order: dict[str, Any], model: nn.Module, step: int) -> None:
    """Only the first rank is shown its progress, so only its weights can be broken here."""
    kind, rank, at, value = order.get("break", ["", 0, 0, 0.0])
    if kind == "weight" and rank == 0 and step == at:
        weight = model.dense.weight.detach()
        whole = weight.to_local() if hasattr(weight, "to_local") else weight
        whole[1, 2] = float(value)


def _sleep_in_files(order: dict[str, Any], rank: int) -> None:
    if order.get("sleep"):
        rng = random.Random(rank)
        for name in HOOKED:
            setattr(os, name, _slow(getattr(os, name), rng, order["sleep"]))


def _slow(call: Any, rng: random.Random, most: float) -> Any:
    def slow(*given: Any, **named: Any) -> Any:
        time.sleep(rng.random() * most)
        return call(*given, **named)

    return slow


def _watch_files() -> list[str]:
    """The names of all that this process makes: new files, and what a rename shows."""
    made: list[str] = []
    opened, renamed = os.open, os.rename

    def note_open(path: Any, flags: int, *rest: Any, **named: Any) -> int:
        if flags & os.O_CREAT and flags & os.O_EXCL:
            made.append(str(path))
        return opened(path, flags, *rest, **named)

    def note_rename(old: Any, new: Any, **named: Any) -> None:
        made.append(str(new))
        renamed(old, new, **named)

    os.open, os.rename = note_open, note_rename
    return made


def _watch_gathering() -> list[int]:
    """The sizes of all sharded tensors that are put together."""
    sizes: list[int] = []
    plain = DTensor.full_tensor

    def noting(self: DTensor, **named: Any) -> Any:
        sizes.append(self.numel())
        return plain(self, **named)

    DTensor.full_tensor = noting
    return sizes


if __name__ == "__main__":
    from bertsmith.errors import BertsmithError
    from bertsmith.training.execution.launch import leave

    code = 70
    try:
        code = run_rank(json.loads(Path(sys.argv[1]).read_text()), Points(0))["code"]
    except BertsmithError as fault:
        sys.stderr.write(f"error: {fault}\n")
        code = fault.exit_code
    leave(code)
