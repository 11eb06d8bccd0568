"""Checkpoints: damage is found and named, the newest whole one counts, old ones go last."""

from __future__ import annotations

import json
import logging
import os
import random
import stat
from pathlib import Path
from typing import Any

import pytest
import torch
from toy_training import saved_tensors, toy_run

from bertsmith.errors import FolderError, TensorMismatchError, WriteError
from bertsmith.training.checkpoints.checkpoint import Checkpoints
from bertsmith.training.checkpoints.checkpoint_files import Content, is_whole, verify
from bertsmith.training.loop.loop import train
from bertsmith.training.loop.state import TrainState

pytestmark = pytest.mark.reliability
LONG = bool(os.environ.get("BERTSMITH_LONG"))


def content(value: float = 1.0, size: int = 300) -> Content:
    return Content(
        tensors={
            "model": {"a.weight": torch.full((size,), value), "b": torch.zeros(0, 3)},
            "optimizer": {"adamw:step:a": torch.tensor(3.0)},
        },
        documents={"state.json": {"step": 1, "clock": 0.1}},
        facts={"step": 1, "settings": {"seed": 4}},
    )


def test_what_is_written_is_read_back_exactly(tmp_path: Path) -> None:
    tensors = {
        "f64": torch.randn(3, dtype=torch.float64),
        "f32": torch.randn(2, 5),
        "bf16": torch.randn(7).bfloat16(),
        "f16": torch.randn(1).half(),
        "i64": torch.tensor([2**40, -1]),
        "u8": torch.arange(5, dtype=torch.uint8),
        "bool": torch.tensor([True, False]),
        "scalar": torch.tensor(2.5),
        "empty": torch.zeros(0, 4),
        "sliced": torch.randn(6, 6).T[1:4],
    }
    path = Checkpoints(tmp_path).save(1, Content(tensors={"x": tensors}, documents={}, facts={}))
    found = saved_tensors(path, "x")
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert found[name].dtype == tensor.dtype, name
        assert torch.equal(found[name], tensor), name


def test_other_readers_understand_the_tensor_files(tmp_path: Path) -> None:
    from safetensors.torch import load_file

    found = load_file(Checkpoints(tmp_path).save(1, content(2.0)) / "model.safetensors")
    assert torch.equal(found["a.weight"], torch.full((300,), 2.0))


def damaged(data: bytes, rng: random.Random, *, cut: bool) -> bytes:
    if cut:
        return data[: rng.randrange(len(data))]
    place = rng.randrange(len(data))
    return data[:place] + bytes([data[place] ^ (1 << rng.randrange(8))]) + data[place + 1 :]


def test_every_flipped_bit_and_every_cut_is_found_and_the_file_named(tmp_path: Path) -> None:
    rng = random.Random(5)
    checkpoints = Checkpoints(tmp_path, keep=2)
    checkpoints.save(1, content(1.0))
    newest = checkpoints.save(2, content(2.0))
    names = sorted(path.name for path in newest.iterdir())
    flips, cuts = (500, 100) if LONG else (50, 10)
    for number in range(flips + cuts):
        path = newest / rng.choice(names)
        before = path.read_bytes()
        path.write_bytes(damaged(before, rng, cut=number >= flips))
        with pytest.raises(FolderError, match=path.name):
            verify(newest)
        found = checkpoints.newest()
        assert found is not None
        assert found.step == 1
        path.write_bytes(before)
    assert verify(checkpoints.path(2))["settings"] == {"seed": 4}


@pytest.mark.parametrize("name", ["manifest.json", "model.safetensors", "state.json"])
def test_a_missing_file_is_named_and_the_older_checkpoint_used(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    checkpoints = Checkpoints(tmp_path, keep=2)
    checkpoints.save(1, content())
    (checkpoints.save(2, content()) / name).unlink()
    with caplog.at_level(logging.WARNING):
        found = checkpoints.newest()
    assert found is not None
    assert found.step == 1
    assert "step-00000002 is not used" in caplog.text
    assert name in caplog.text


def test_a_manifest_cannot_lead_out_of_its_folder(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, keep=2)
    path = checkpoints.save(1, content())
    manifest = json.loads((path / "manifest.json").read_text())
    for odd in ("../lock", "/etc/passwd", ".."):
        body = {**manifest, "files": {odd: {"size": 1, "sha256": "0"}}}
        body.pop("sha256")
        import hashlib

        raw = (json.dumps(body, indent=1, sort_keys=True) + "\n").encode()
        body["sha256"] = hashlib.sha256(raw).hexdigest()
        raw = (json.dumps(body, indent=1, sort_keys=True) + "\n").encode()
        (path / "manifest.json").write_bytes(raw)
        with pytest.raises(FolderError, match="outside the folder"):
            verify(path)


def test_when_none_is_whole_the_run_does_not_begin_again_in_silence(tmp_path: Path) -> None:
    train(toy_run(tmp_path))
    for path in (tmp_path / "checkpoints").glob("step-*/state.json"):
        path.write_text("{}")
    with pytest.raises(FolderError, match="none of the 2 checkpoints"):
        train(toy_run(tmp_path))


def test_rotation_keeps_whole_ones_and_never_counts_a_damaged_one(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, keep=2)
    for step in (1, 2, 3):
        checkpoints.save(step, content())
    assert checkpoints.steps() == [2, 3]
    (checkpoints.path(3) / "model.safetensors").write_bytes(b"")
    checkpoints.save(4, content())
    assert checkpoints.steps() == [2, 4]
    assert not list(tmp_path.glob(".*"))


def test_a_damaged_checkpoint_of_the_same_step_is_written_again(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, keep=2)
    path = checkpoints.save(1, content(1.0))
    (path / "model.safetensors").write_bytes(b"nothing")
    checkpoints.save(1, content(2.0))
    assert float(saved_tensors(path, "model")["a.weight"][0]) == 2.0


def test_nothing_is_rotated_away_before_the_new_one_verifies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints = Checkpoints(tmp_path, keep=2)
    checkpoints.save(1, content())
    checkpoints.save(2, content())

    def fails(path: Path, **share: int) -> dict[str, Any]:
        raise FolderError(f"{path / 'model.safetensors'} is damaged")

    monkeypatch.setattr("bertsmith.training.checkpoints.checkpoint.verify", fails)
    with pytest.raises(WriteError, match="does not read back"):
        checkpoints.save(3, content())
    assert is_whole(checkpoints.path(1))
    assert is_whole(checkpoints.path(2))


def test_what_a_killed_process_left_is_removed_at_the_next_start(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path / "checkpoints")
    checkpoints.prepare()
    for name in (".step-00000007.new-0123abcd", ".step-00000005.trash-00ff"):
        (tmp_path / "checkpoints" / name).mkdir()
    (tmp_path / "checkpoints" / "notes").mkdir()
    checkpoints.prepare()
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["notes"]


def test_every_rename_follows_the_syncs_of_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Power loss: file contents first, then the name, then the folder that holds the name."""
    events: list[tuple[str, str]] = []
    fsync, rename = os.fsync, os.rename

    def note_sync(descriptor: int) -> None:
        events.append(("sync", str(Path(f"/proc/self/fd/{descriptor}").readlink())))
        fsync(descriptor)

    def note_rename(old: Any, new: Any) -> None:
        events.append((f"rename {Path(old).name}", str(new)))
        rename(old, new)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(os, "rename", note_rename)
    checkpoints = Checkpoints(tmp_path, keep=2)
    for step in (1, 2, 3):
        path = checkpoints.save(step, content())
        names = [file.name for file in path.iterdir()]
        place = next(i for i, event in enumerate(events) if event[1] == str(path))
        staged = tmp_path / events[place][0].removeprefix("rename ")
        synced = {name for kind, name in events[:place] if kind == "sync"}
        assert {str(staged / name) for name in names} | {str(staged)} <= synced
        assert events[place + 1] == ("sync", str(tmp_path))
    moved = [event for event in events if "trash" in event[1]]
    assert len(moved) == 1
    assert events.index(moved[0]) > next(
        i for i, event in enumerate(events) if event[1] == str(checkpoints.path(3))
    )


@pytest.mark.parametrize(("mask", "file", "folder"), [(0o022, 0o644, 0o755), (0o077, 0o600, 0o700)])
def test_modes_follow_the_umask(tmp_path: Path, mask: int, file: int, folder: int) -> None:
    before = os.umask(mask)
    try:
        train(toy_run(tmp_path / "run"))
    finally:
        os.umask(before)
    for path in (tmp_path / "run").rglob("*"):
        wanted = folder if path.is_dir() else file
        assert stat.S_IMODE(path.stat().st_mode) == wanted, path


def test_weights_of_another_shape_are_refused_by_name(tmp_path: Path) -> None:
    train(toy_run(tmp_path))
    other = toy_run(tmp_path)
    other.model.dense = torch.nn.Linear(16, 17)
    with pytest.raises(TensorMismatchError, match=r"dense\.(weight|bias)"):
        train(other)


def test_the_state_of_another_version_is_refused() -> None:
    with pytest.raises(FolderError, match="speed"):
        TrainState.from_json({**TrainState().to_json(), "speed": 1}, where="state.json")
