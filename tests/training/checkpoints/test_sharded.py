"""Sharded checkpoints: each rank writes its rows, any number of ranks reads them, all or none."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from fork_client import ForkServer
from safetensors.torch import load_file, save_file
from toy_training import final_state, saved_tensors

from bertsmith.errors import FolderError, WriteError
from bertsmith.training.checkpoints.checkpoint import Checkpoints, _check_arrived
from bertsmith.training.checkpoints.checkpoint_files import is_whole, read_document, verify
from bertsmith.training.checkpoints.sharded import ShardedLayout
from bertsmith.training.checkpoints.tensor_layout import open_stored
from bertsmith.training.execution.ranks import Ranks

pytestmark = pytest.mark.reliability
LONG = bool(os.environ.get("BERTSMITH_LONG"))
LAST = "checkpoints/step-00000012"
PLACE = ("world", "sharding")
PLACES = {"one": (1, "ddp"), "ddp2": (2, "ddp"), "fsdp2": (2, "fsdp"), "fsdp3": (3, "fsdp")}


@pytest.fixture(scope="module")
def alone(forks: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One process, left alone."""
    folder = tmp_path_factory.mktemp("alone")
    forks.finish_ranks("rank toy", folder=folder, world=1)
    return folder


@pytest.fixture(scope="module")
def straight(
    forks: ForkServer, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[dict[str, Any]]]:
    """Two sharded ranks, left alone, and what each came to."""
    folder = tmp_path_factory.mktemp("straight")
    return folder, forks.finish_ranks("rank toy", folder=folder, mode="fsdp")


def assert_same_end(one: Path, other: Path, *, tolerance: float = 1e-6) -> None:
    for group in ("model", "optimizer", "average"):
        found, wanted = saved_tensors(one / LAST, group), saved_tensors(other / LAST, group)
        assert found.keys() == wanted.keys()
        for name in wanted:
            torch.testing.assert_close(
                found[name], wanted[name], rtol=tolerance, atol=tolerance, msg=f"{group} {name}"
            )


def test_each_rank_writes_its_own_rows_and_nobody_puts_them_together(
    straight: tuple[Path, list[dict[str, Any]]],
) -> None:
    folder, ranks = straight
    shards = sorted((folder / LAST).glob("*.safetensors"))
    assert len(shards) == 2
    one, other = (load_file(path) for path in shards)
    assert one["model:tokens.weight"].shape == (12, 16)  # of 23 rows
    assert other["model:tokens.weight"].shape == (11, 16)
    assert one["optimizer:adamw:exp_avg:dense.weight"].shape == (8, 16)
    assert "optimizer:adamw:step:dense.weight" in one  # what all hold, the first one writes
    assert "optimizer:adamw:step:dense.weight" not in other
    for number, rank in enumerate(ranks, start=1):
        assert rank["gathered"] <= 1  # nothing but the norm of the gradients
        written = {Path(name).name for name in rank["made"] if "shard-" in name}
        assert written == {f"shard-{number:05d}-model-00001-of-00001.safetensors"}
    names = {Path(name).name for name in ranks[1]["made"]}
    assert not any(name.startswith("step-") or name == "manifest.json" for name in names)


def test_a_sharded_run_ends_as_one_process_does(
    alone: Path, straight: tuple[Path, list[dict[str, Any]]]
) -> None:
    assert_same_end(straight[0], alone)


@pytest.mark.parametrize("optimizer", ["lamb", "muon"])
def test_other_optimizers_are_sharded_alike(
    forks: ForkServer, tmp_path: Path, optimizer: str
) -> None:
    forks.finish_ranks("rank toy", folder=tmp_path / "one", world=1, optimizer=optimizer)
    forks.run_ranks(
        "rank toy", folder=tmp_path / "two", mode="fsdp", optimizer=optimizer, die=[0, 6]
    )
    forks.finish_ranks("rank toy", folder=tmp_path / "two", mode="fsdp", optimizer=optimizer)
    assert_same_end(tmp_path / "two", tmp_path / "one")


def test_killed_and_resumed_the_end_is_the_same_bit_for_bit(
    forks: ForkServer, tmp_path: Path, straight: tuple[Path, list[dict[str, Any]]]
) -> None:
    ended = forks.run_ranks("rank toy", folder=tmp_path, mode="fsdp", die=[1, 9])
    assert [rank["code"] for rank in ended] == [69, -9]
    assert "rank 1" in ended[0]["error"]
    forks.finish_ranks("rank toy", folder=tmp_path, mode="fsdp")
    assert final_state(tmp_path) == final_state(straight[0])


CHAINS = [
    ("fsdp2", "one", "fsdp2"),
    ("one", "fsdp3", "ddp2"),
    ("ddp2", "fsdp2", "one"),
    *([("fsdp3", "fsdp2", "fsdp3"), ("fsdp3", "ddp2", "fsdp2")] if LONG else []),
]


@pytest.mark.parametrize("chain", CHAINS, ids="-".join)
def test_any_number_of_ranks_goes_on_from_any_other(
    forks: ForkServer, tmp_path: Path, alone: Path, chain: tuple[str, ...]
) -> None:
    for place, end in zip(chain, (5, 9, None), strict=True):
        world, mode = PLACES[place]
        ended = forks.run_ranks("rank toy", folder=tmp_path, world=world, mode=mode, die=[0, end])
        assert ended[0]["code"] == (0 if end is None else -9), ended[0]["error"]
    assert_same_end(tmp_path, alone)
    changes = read_document(tmp_path / LAST, "state.json")["changes"]
    # No change of place passes in silence.
    assert {change["step"] for change in changes if change["name"] in PLACE} == {4, 8}


def remove(shard: Path) -> None:
    shard.unlink()


def cut(shard: Path) -> None:
    shard.write_bytes(shard.read_bytes()[:-7])


def flip(shard: Path) -> None:
    data = bytearray(shard.read_bytes())
    data[-100] ^= 4
    shard.write_bytes(data)


@pytest.mark.parametrize("damage", [remove, cut, flip])
def test_without_one_good_shard_the_older_checkpoint_is_used_and_said_so(
    forks: ForkServer,
    tmp_path: Path,
    straight: tuple[Path, list[dict[str, Any]]],
    damage: Callable[[Path], None],
) -> None:
    forks.run_ranks("rank toy", folder=tmp_path, mode="fsdp", die=[0, 10])
    shard = tmp_path / "checkpoints/step-00000008/shard-00002-model-00001-of-00001.safetensors"
    damage(shard)
    ranks = forks.finish_ranks("rank toy", folder=tmp_path, mode="fsdp")
    said = "\n".join(line for rank in ranks for line in rank["log"])
    assert "checkpoint step-00000008 is not used" in said
    assert shard.name in said
    assert all(any("step-00000004 (step 4)" in line for line in rank["log"]) for rank in ranks)
    assert final_state(tmp_path) == final_state(straight[0])


def kill_points(points: list[int]) -> list[tuple[int, int]]:
    """Which rank is killed at which of its file-system steps."""
    every = [(rank, at) for rank, count in enumerate(points) for at in range(1, count + 1)]
    # In the second save: rank 1 with its shard open, rank 0 with all but the manifest written.
    return every if LONG else [(1, points[1] // 2 + 1), (0, points[0] // 2 + 4)]


def test_a_rank_killed_inside_saving_leaves_the_last_good_checkpoint(
    forks: ForkServer, tmp_path: Path, straight: tuple[Path, list[dict[str, Any]]]
) -> None:
    for rank, at in kill_points([found["points"] for found in straight[1]]):
        folder = tmp_path / f"{rank}-{at}"
        ended = forks.run_ranks("rank toy", folder=folder, mode="fsdp", kill_at=[rank, at])
        assert ended[rank]["code"] == -9, (rank, at, ended)
        found = Checkpoints(folder / "checkpoints")
        for step in found.steps():
            assert len(verify(found.path(step))["files"]) == 3, (rank, at)  # all or none
        forks.finish_ranks("rank toy", folder=folder, mode="fsdp")
        assert final_state(folder) == final_state(straight[0]), (rank, at)
        assert not list(folder.rglob(".*")), (rank, at)


def test_a_disk_that_fails_one_rank_ends_all_alike_and_keeps_what_was_good(
    forks: ForkServer, tmp_path: Path, straight: tuple[Path, list[dict[str, Any]]]
) -> None:
    at = straight[1][1]["points"] // 2 + 1
    ended = forks.run_ranks("rank toy", folder=tmp_path, mode="fsdp", fail_at=[1, at])
    assert [rank["code"] for rank in ended] == [74, 74], ended
    assert ended[0]["error"].startswith("WriteError: rank 1 failed:")
    assert "input/output error" in ended[1]["error"]
    assert "bytes are free" in ended[1]["error"]
    found = Checkpoints(tmp_path / "checkpoints").newest()
    assert found is not None
    assert not list((tmp_path / "checkpoints").glob(".*"))
    forks.finish_ranks("rank toy", folder=tmp_path, mode="fsdp")
    assert final_state(tmp_path) == final_state(straight[0])


def test_ranks_that_sleep_at_random_show_all_shards_or_none(
    forks: ForkServer, tmp_path: Path
) -> None:
    steps = 50 if LONG else 6
    done, odd, seen = threading.Event(), [], set()

    def look() -> None:
        """What anybody sees at any moment is whole, or has just been rotated away."""
        while not done.wait(0.002):
            for path in (tmp_path / "checkpoints").glob("step-*"):
                seen.add(path.name)
                if not is_whole(path) and path.exists():
                    odd.append(path.name)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        ranks = forks.finish_ranks(
            "rank toy", folder=tmp_path, mode="fsdp", steps=steps, save=1, sleep=0.01
        )
    finally:
        done.set()
        watcher.join()
    assert not odd
    assert len(seen) > steps // 2
    made = [[Path(name) for name in rank["made"]] for rank in ranks]
    for rank, paths in enumerate(made, start=1):
        shards = [path for path in paths if path.name.startswith("shard-")]
        assert len(shards) == len(set(shards)) == steps
        assert {path.name[:11] for path in shards} == {f"shard-{rank:05d}"}
        shown = [path for path in paths if path.name.startswith("step-")]
        assert len(shown) == (steps if rank == 1 else 0)  # one rank renames
    assert verify(tmp_path / f"checkpoints/step-{steps:08d}")


def test_only_what_the_manifest_names_is_read(
    straight: tuple[Path, list[dict[str, Any]]],
) -> None:
    path = straight[0] / "checkpoints/step-00000008"
    before = saved_tensors(path, "model")
    stranger = path / "shard-00009-model-00001-of-00001.safetensors"
    save_file({"model:dense.weight": torch.zeros(16, 16)}, stranger)
    (path / ".metadata").write_bytes(b"cos\nsystem\n(S'false'\ntR.")
    try:
        again = saved_tensors(path, "model")
    finally:
        stranger.unlink()
        (path / ".metadata").unlink()
    assert all(torch.equal(before[name], again[name]) for name in before)


def test_a_manifest_without_a_shard_is_not_filled_up_with_anything(
    forks: ForkServer, tmp_path: Path
) -> None:
    forks.finish_ranks("rank toy", folder=tmp_path, mode="fsdp", steps=4)
    path = tmp_path / "checkpoints/step-00000004"
    body = json.loads((path / "manifest.json").read_text())
    body["files"].pop("shard-00001-model-00001-of-00001.safetensors")
    body.pop("sha256")
    body["sha256"] = hashlib.sha256(as_written(body)).hexdigest()
    (path / "manifest.json").write_bytes(as_written(body))
    with pytest.raises(FolderError, match=r"a shard is missing"):
        open_stored(path, verify(path))


def as_written(body: dict[str, Any]) -> bytes:
    return (json.dumps(body, indent=1, sort_keys=True) + "\n").encode()


def test_ranks_that_do_not_share_a_file_system_are_told_so(tmp_path: Path) -> None:
    with pytest.raises(WriteError, match="file system that all machines share"):
        ShardedLayout().write(tmp_path / "elsewhere", {}, Ranks())
    with pytest.raises(WriteError, match="sees nothing; the run's folder must lie on"):
        _check_arrived(tmp_path, {"shard-00002": {"size": 7, "sha256": ""}})


def test_bytes_are_on_the_disk_before_a_shard_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer's own fsync comes before the last bytes have left the buffer."""
    synced: list[int] = []
    plain = os.fsync

    def note(descriptor: int) -> None:
        plain(descriptor)
        synced.append(os.fstat(descriptor).st_size)

    monkeypatch.setattr(os, "fsync", note)
    files = ShardedLayout().write(tmp_path, {"model": {"a": torch.ones(5)}}, Ranks())
    (path,) = tmp_path.iterdir()
    data = path.read_bytes()
    assert synced[-1] == len(data) == files[path.name]["size"]
    assert files[path.name]["sha256"] == hashlib.sha256(data).hexdigest()
