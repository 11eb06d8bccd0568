from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import rank_program
import torch
from safetensors.torch import load_file
from torch import nn

from bertsmith.training.ranks import OneRank, RankSettings, join

PROGRAM = Path(rank_program.__file__)
STEPS = 20


def run(out: Path, mode: str, *, world: int, steps: int = STEPS, saved: Path | None = None) -> dict:
    """A finished toy run: its curve, and the whole state beside it."""
    if world == 1:
        rank_program.main(out, mode, steps, saved)
        return json.loads(out.read_text())
    ended = start(out, mode, world=world, steps=steps, saved=saved)
    assert ended.returncode == 0, ended.stderr[-3000:]
    return json.loads(out.read_text())


def start(
    out: Path,
    mode: str,
    *,
    world: int,
    steps: int = STEPS,
    saved: Path | None = None,
    restarts: int = 0,
    **planted: str,
) -> subprocess.CompletedProcess[str]:
    program = [str(PROGRAM), str(out), mode, str(steps), *([str(saved)] if saved else [])]
    launcher = ["-m", "bertsmith.training.launch", f"--devices={world}", f"--restarts={restarts}"]
    launcher += ["--grace=3", "--"]
    command = [sys.executable, *launcher, *program]
    variables = os.environ | {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1", "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        command, env=variables | planted, capture_output=True, text=True, timeout=100, check=False
    )


def same(one: list[float], other: list[float], tolerance: float = 1e-5) -> bool:
    return len(one) == len(other) and all(
        abs(a - b) <= tolerance * abs(b) for a, b in zip(one, other, strict=True)
    )


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict]:
    out = tmp_path_factory.mktemp("alone") / "alone"
    return out, run(out, "ddp", world=1)


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict]:
    out = tmp_path_factory.mktemp("together") / "together"
    return out, run(out, "ddp", world=2)


def test_two_ranks_give_the_loss_curve_of_one(
    alone: tuple[Path, dict], together: tuple[Path, dict]
) -> None:
    assert together[1]["world"] == 2
    assert alone[1]["curve"][-1] < 0.95 * alone[1]["curve"][0]
    assert same(together[1]["curve"], alone[1]["curve"])


def test_fully_sharded_ranks_give_the_same_again(
    tmp_path: Path, together: tuple[Path, dict]
) -> None:
    sharded = run(tmp_path / "fsdp", "fsdp", world=2)
    assert same(sharded["curve"], together[1]["curve"])
    assert same(sharded["held_out"], together[1]["held_out"])
    one = load_file(tmp_path / "fsdp.safetensors")
    other = load_file(together[0].with_suffix(".safetensors"))
    assert one.keys() == other.keys()
    # Attention does not depend on the keys' bias: its gradient is noise, which Adam blows up.
    for name in (name for name in one if "key.bias" not in name):
        torch.testing.assert_close(one[name], other[name], rtol=1e-3, atol=2e-6)


def test_a_run_of_two_ranks_goes_on_with_one(tmp_path: Path, alone: tuple[Path, dict]) -> None:
    half = STEPS // 2
    first = run(tmp_path / "first", "ddp", world=2, steps=half)
    saved = tmp_path / "first.safetensors"
    second = run(tmp_path / "second", "ddp", world=1, steps=half, saved=saved)
    assert same(first["curve"] + second["curve"], alone[1]["curve"])


# Under load the restarted rank was once seen to end with SIGABRT inside gloo (1 of 8 runs): until
# that is understood, the restart is part of the long form only.
@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("BERTSMITH_LONG"), reason="long form: BERTSMITH_LONG=1")
def test_a_killed_rank_restarts_the_group_and_the_end_is_bit_identical(
    tmp_path: Path, together: tuple[Path, dict]
) -> None:
    out = tmp_path / "again"
    planted = {"KILL": "1:3", "FIRST": str(tmp_path / "was-killed")}
    ended = start(out, "ddp", world=2, restarts=1, **planted)
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert (tmp_path / "was-killed").exists()
    one = load_file(out.with_suffix(".safetensors"))
    other = load_file(together[0].with_suffix(".safetensors"))
    assert all(torch.equal(one[name], other[name]) for name in other)


@pytest.mark.slow
def test_when_restarts_are_used_up_the_rank_and_its_signal_are_named(tmp_path: Path) -> None:
    begun = time.monotonic()
    ended = start(tmp_path / "never", "ddp", world=2, **{"KILL": "1:2"})
    assert ended.returncode == 128 + 9
    assert time.monotonic() - begun < 30
    last = ended.stderr.strip().splitlines()[-1]
    assert "rank 1" in last
    assert "SIGKILL" in last


@pytest.mark.slow
def test_a_rank_that_hangs_is_named_by_the_others(tmp_path: Path) -> None:
    ended = start(tmp_path / "hung", "ddp", world=2, STOP="1:2", TIMEOUT="3")
    assert ended.returncode != 0
    assert "waited in vain for rank 1" in ended.stderr


def test_one_process_needs_no_group() -> None:
    ranks = join(RankSettings(sharding="fsdp"), device=torch.device("cpu"))
    model = nn.Linear(2, 2)
    ranks.prepare(model)
    assert isinstance(ranks, OneRank)
    assert (ranks.world, ranks.rank, ranks.is_first) == (1, 0, True)
    assert ranks.passes(3) == 3
    with ranks.whole(model):
        assert ranks.sum_counts({"a": 2}) == {"a": 2}
    ranks.close()
