"""Several ranks and numbers: held-out shares of any size, and broken numbers on any rank (F1)."""

from __future__ import annotations

import math
import os
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from fork_client import ForkServer
from toy_training import saved_tensors

from bertsmith.errors import DivergedError, HardwareError
from bertsmith.training.checkpoints.checkpoint import Checkpoints
from bertsmith.training.execution.precision import choose_precision
from bertsmith.training.loop.guard import finite

LONG = bool(os.environ.get("BERTSMITH_LONG"))
STEPS = 12
EVERY = 4  # steps between two evaluations, and two saves


@pytest.mark.parametrize("mode", ["ddp", "fsdp"])
def test_a_rank_without_held_out_text_changes_nothing(
    forks: ForkServer, tmp_path: Path, mode: str
) -> None:
    """Before any step as well, when a sharded model has not been run once."""
    shared = {"mode": mode, "measure_first": True, "steps": 4}
    even = forks.finish_ranks("rank toy", folder=tmp_path / "even", **shared)
    odd = forks.finish_ranks("rank toy", folder=tmp_path / "odd", texts_held_out=[8, 0], **shared)
    none = forks.finish_ranks("rank toy", folder=tmp_path / "none", texts_held_out=[0, 0], **shared)
    for found in odd:
        for when in ("first", "held_out"):
            assert found[when]["counts"] == even[0][when]["counts"]
            assert found[when]["total"] == pytest.approx(even[0][when]["total"], rel=1e-6)
    assert even[0]["first"]["total"] != even[0]["held_out"]["total"]
    assert [rank["held_out"] for rank in none] == [None, None]


def cases() -> list[tuple[str, str, int, int, float]]:
    """How many ranks break where: mode, kind, rank, step, value."""
    rng = random.Random(8)
    places = [("one", 0), ("ddp", 0), ("ddp", 1), ("fsdp", 0), ("fsdp", 1)]
    kinds = ["loss", "gradient", "weight"]
    found = []
    for number in range(20 if LONG else 1):
        for mode, rank in places:
            kind = kinds[number % 3] if rank == 0 else kinds[number % 2]
            value = rng.choice([math.nan, math.inf, -math.inf])
            found.append((mode, kind, rank, rng.randrange(1, STEPS), value))
    # Weights that only one rank has: its guard must stop all.
    return found if LONG else [*found, ("fsdp", "weight", 0, 7, math.inf)]


def stopped(
    forks: ForkServer, folder: Path, case: tuple[str, str, int, int, float], **more: Any
) -> None:
    mode, kind, rank, step, value = case
    world = 1 if mode == "one" else 2
    ranks = forks.run_ranks(
        "rank toy",
        folder=folder,
        world=world,
        mode="fsdp" if mode == "fsdp" else "ddp",
        **{"break": [kind, rank, step, value]},
        **more,
    )
    assert [found["code"] for found in ranks] == [DivergedError.exit_code] * world, (case, ranks)
    for found in ranks:
        if kind == "weight" and step % EVERY == 0:  # seen even before the next step begins
            assert f"at step {step}: dense.weight of the model is not finite" in found["error"]
        else:
            assert f"step {step}, examples" in found["error"], (case, found["error"])
            assert "learning rate" in found["error"]
            assert "gradient norm" in found["error"]
    checkpoints = Checkpoints(folder / "checkpoints")
    for saved in checkpoints.steps():
        assert saved <= step
        for group in ("model", "optimizer"):
            for name, tensor in saved_tensors(checkpoints.path(saved), group).items():
                assert finite(tensor), (case, saved, name)
    if kind == "weight":
        assert max(checkpoints.steps(), default=0) == (step - 1) // EVERY * EVERY, case
    else:
        assert checkpoints.steps()[-1] == step, case  # the state before the broken step


@pytest.mark.reliability
@pytest.mark.parametrize("case", cases(), ids=lambda case: "-".join(map(str, case)))
def test_a_broken_number_on_any_rank_stops_all_before_the_step(
    forks: ForkServer, tmp_path: Path, case: tuple[str, str, int, int, float]
) -> None:
    stopped(forks, tmp_path, case)


@pytest.mark.reliability
@pytest.mark.parametrize("mode", ["one", "ddp", "fsdp"])
def test_the_same_holds_for_products_in_bf16(forks: ForkServer, tmp_path: Path, mode: str) -> None:
    try:
        path = choose_precision("bf16", torch.device("cpu"))
    except HardwareError as fault:
        pytest.skip(str(fault))
    rank = 0 if mode == "one" else 1
    for step in range(1, STEPS, 1 if LONG else 7):
        case = (mode, "gradient" if step % 2 else "loss", rank, step, math.inf)
        stopped(forks, tmp_path / str(step), case, precision=path.name)
