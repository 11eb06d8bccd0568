"""Two ranks learn to write what one learns, in-batch negatives included."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from fork_client import ForkServer
from safetensors.torch import load_file

pytestmark = pytest.mark.slow
SECTIONS: dict[str, Any] = {
    "plan": {"steps": 4, "batch": 9, "micro_tokens": 60},
    "optimizer": {"lr": 3e-4},  # at higher ones Adam makes rounding of small gradients visible
}


def jobs(folder: Path) -> list[Any]:
    shift = {**SECTIONS, "writing": {"by": "shift"}}
    return [
        [str(folder / "mask"), "write", SECTIONS],
        [str(folder / "shift"), "write", shift],
        [str(folder / "similar"), "similar", SECTIONS],
    ]


def test_two_ranks_learn_what_one_learns(forks: ForkServer, tiny: str, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder, world in ((one, 1), (two, 2)):
        forks.finish_ranks("write", model=tiny, jobs=jobs(folder), world=world)
    start = load_file(Path(tiny) / "model.safetensors")
    for name in ("mask", "shift", "similar"):
        alone = load_file(one / name / "model.safetensors")
        together = load_file(two / name / "model.safetensors")
        moved = 0.0
        for key, tensor in alone.items():
            torch.testing.assert_close(together[key], tensor, rtol=1e-5, atol=1e-5, msg=key)
            moved = max(moved, float((tensor - start[key]).abs().max()))
        assert moved > 3e-4, name


def test_sharded_weights_are_refused(forks: ForkServer, tiny: str, tmp_path: Path) -> None:
    ranks = forks.run_ranks("write", model=tiny, jobs=jobs(tmp_path), world=2, sharding="fsdp")
    assert [rank["code"] for rank in ranks] == [2, 2]
    assert all("run.sharding = fsdp is for pre-training" in rank["error"] for rank in ranks)


def test_more_ranks_than_pairs_are_no_obstacle(
    forks: ForkServer, tiny: str, tmp_path: Path
) -> None:
    sections = {"plan": {"steps": 2, "batch": 2}}
    order = [[str(tmp_path / task), task, sections] for task in ("write", "similar")]
    forks.finish_ranks("write", model=tiny, jobs=order, world=3)
