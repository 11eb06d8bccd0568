"""Two ranks learn what one learns; sharded weights are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from fork_client import ForkServer
from safetensors.torch import load_file

JOBS = {
    "contrastive": "triplets",
    "cosent": "scores",
    "softmax": "labels",
}
SECTIONS: dict[str, Any] = {
    "encoder": {"dropout": 0.0},
    "plan": {"steps": 4, "batch": 13, "micro_tokens": 60},
}


def jobs(folder: Path) -> list[Any]:
    return [[str(folder / name), name, data, SECTIONS] for name, data in JOBS.items()]


def test_two_ranks_learn_what_one_learns(forks: ForkServer, tiny: str, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder, world in ((one, 1), (two, 2)):
        forks.finish_ranks("sentences", model=tiny, jobs=jobs(folder), world=world)
    start = load_file(Path(tiny) / "model.safetensors")
    for name in JOBS:
        alone = load_file(one / name / "model.safetensors")
        together = load_file(two / name / "model.safetensors")
        moved = 0.0
        for key, tensor in alone.items():
            torch.testing.assert_close(together[key], tensor, rtol=1e-5, atol=1e-6, msg=key)
            moved = max(moved, float((tensor - start[key]).abs().max()))
        assert moved > 1e-3, name


def test_sharded_weights_are_refused(forks: ForkServer, tiny: str, tmp_path: Path) -> None:
    ranks = forks.run_ranks("sentences", model=tiny, jobs=jobs(tmp_path), world=2, sharding="fsdp")
    assert [rank["code"] for rank in ranks] == [2, 2]
    assert all("run.sharding = fsdp is for pre-training" in rank["error"] for rank in ranks)


def test_more_ranks_than_rows_are_no_obstacle(forks: ForkServer, tiny: str, tmp_path: Path) -> None:
    sections = {"encoder": {"dropout": 0.0}, "plan": {"steps": 2, "batch": 2}}
    order: list[Any] = [[str(tmp_path / "few"), "contrastive", "pairs", sections]]
    forks.finish_ranks("sentences", model=tiny, jobs=order, world=3)


pytestmark = pytest.mark.slow
