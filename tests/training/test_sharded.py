"""Weights sharded over ranks: checkpoints hold whole tensors and resume bit for bit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from toy_training import final_state, toy_run

from bertsmith.training.checkpoint_files import read_tensors
from bertsmith.training.loop import train
from bertsmith.training.optimizers import LambSettings


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["adamw", "lamb"])
def test_a_sharded_run_saves_whole_tensors_and_resumes(tmp_path: Path, optimizer: str) -> None:
    script = Path(__file__).with_name("sharded_child.py")
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path), optimizer],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "interrupted" in done.stdout
    assert final_state(tmp_path / "cut") == final_state(tmp_path / "straight")
    plain = toy_run(tmp_path / "plain")
    if optimizer == "lamb":
        plain = toy_run(tmp_path / "plain", optimizer=LambSettings(lr=5e-3))
    train(plain)
    name = "checkpoints/step-00000024"
    one = read_tensors(tmp_path / "straight" / name, "model.safetensors")
    two = read_tensors(tmp_path / "plain" / name, "model.safetensors")
    assert one.keys() == two.keys()
    for key, tensor in one.items():
        assert float((tensor - two[key]).abs().max()) < 1e-5, key
