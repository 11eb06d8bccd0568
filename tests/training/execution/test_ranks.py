"""Ranks by hand: two give the curve of one, sharded or not, and go on with another number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from fork_client import ForkServer
from safetensors.torch import load_file
from torch import nn
from toy_corpus import short_recipe

from bertsmith.errors import ConfigError
from bertsmith.training.execution.ranks import Ranks, RankSettings, join
from bertsmith.training.pretrain.pretrain import check_shares

STEPS = 20


def run(
    forks: ForkServer,
    out: Path,
    mode: str,
    *,
    world: int,
    steps: int = STEPS,
    saved: Path | None = None,
) -> dict[str, Any]:
    """A finished run: its curve, and the whole state beside it."""
    order = {"out": out, "mode": mode, "steps": steps, "saved": saved}
    forks.finish_ranks("rank program", world=world, **order)
    found: dict[str, Any] = json.loads(out.read_text())
    return found


def same(one: list[float], other: list[float], tolerance: float = 1e-5) -> bool:
    return len(one) == len(other) and all(
        abs(a - b) <= tolerance * abs(b) for a, b in zip(one, other, strict=True)
    )


@pytest.fixture(scope="module")
def alone(forks: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict]:
    out = tmp_path_factory.mktemp("alone") / "alone"
    return out, run(forks, out, "ddp", world=1)


@pytest.fixture(scope="module")
def together(forks: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict]:
    out = tmp_path_factory.mktemp("together") / "together"
    return out, run(forks, out, "ddp", world=2)


def assert_same_state(one: Path, other: Path) -> None:
    found, wanted = (load_file(path.with_suffix(".safetensors")) for path in (one, other))
    assert found.keys() == wanted.keys()
    for name in wanted:
        torch.testing.assert_close(
            found[name], wanted[name], rtol=1e-6, atol=2e-7, msg=lambda said, n=name: f"{n}: {said}"
        )


def test_two_ranks_give_the_loss_curve_of_one(
    alone: tuple[Path, dict], together: tuple[Path, dict]
) -> None:
    assert together[1]["world"] == 2
    assert alone[1]["curve"][-1] < 0.95 * alone[1]["curve"][0]
    assert same(together[1]["curve"], alone[1]["curve"])
    assert_same_state(together[0], alone[0])


def test_fully_sharded_ranks_give_the_same_again(
    forks: ForkServer, tmp_path: Path, together: tuple[Path, dict]
) -> None:
    sharded = run(forks, tmp_path / "fsdp", "fsdp", world=2)
    assert same(sharded["curve"], together[1]["curve"])
    assert same(sharded["held_out"], together[1]["held_out"])
    assert_same_state(tmp_path / "fsdp", together[0])


def test_a_run_of_two_ranks_goes_on_with_one(
    forks: ForkServer, tmp_path: Path, alone: tuple[Path, dict]
) -> None:
    half = STEPS // 2
    first = run(forks, tmp_path / "first", "ddp", world=2, steps=half)
    saved = tmp_path / "first.safetensors"
    second = run(forks, tmp_path / "second", "ddp", world=1, steps=half, saved=saved)
    assert same(first["curve"] + second["curve"], alone[1]["curve"])


def test_one_process_needs_no_group() -> None:
    ranks = join(RankSettings(sharding="fsdp"), device=torch.device("cpu"))
    model = nn.Linear(2, 2)
    ranks.prepare(model)
    assert type(ranks) is Ranks
    assert (ranks.world, ranks.rank, ranks.is_first) == (1, 0, True)
    assert ranks.passes(3) == 3
    with ranks.whole(model), ranks.watched():
        assert ranks.sum_counts({"a": 2}) == {"a": 2}
    ranks.close()


def test_a_batch_too_small_for_the_ranks_is_refused_at_the_start() -> None:
    recipe = short_recipe("bert", "run.sharding=fsdp", "batch.tokens=1024")
    check_shares(recipe, 2)  # two texts of 512 tokens in its last stage
    with pytest.raises(ConfigError, match=r"2 texts cannot be shared by 3 .*batch\.tokens"):
        check_shares(recipe, 3)
    check_shares(short_recipe("bert", "batch.tokens=1024"), 3)  # whole ranks may have nothing to do
