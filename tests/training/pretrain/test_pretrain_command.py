"""`bertsmith pretrain` in processes of its own: resumes after a kill, verifies it, ends well."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[3] / "src"


def arguments(toy_shards: Path, out: Path, *more: str) -> list[str]:
    return [
        *(sys.executable, "-m", "bertsmith", "pretrain", "bert"),
        *("--corpus", str(toy_shards), "--out", str(out), "--size", "tiny", "--threads", "1"),
        *("--precision", "fp32", "--set", "batch.tokens=512", "--set", "save.every=5"),
        *("--set", "log.tensorboard=false", *more),
    ]


def environment() -> dict[str, str]:
    path = os.pathsep.join(filter(None, [str(SOURCE), os.environ.get("PYTHONPATH")]))
    return os.environ | {"PYTHONPATH": path}


def run(*command: str, expected: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command, env=environment(), capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == expected, done.stdout + done.stderr
    return done


def wait_for(path: Path, process: subprocess.Popen) -> None:
    limit = time.monotonic() + 120
    while not path.exists():
        assert process.poll() is None, "ended before it was to be stopped"
        assert time.monotonic() < limit
        time.sleep(0.02)


def test_a_stopped_command_goes_on_and_ends_the_same(toy_shards, tmp_path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    shown = run(*arguments(toy_shards, whole, "--steps", "60"))
    assert "held-out text" in shown.stdout
    assert "mlm" in shown.stdout
    assert (whole / "report.html").exists()
    for number, code in ((signal.SIGKILL, -signal.SIGKILL), (signal.SIGTERM, 75)):
        process = subprocess.Popen(
            arguments(toy_shards, broken, "--steps", "60"),
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        step = 5 if number == signal.SIGKILL else 30
        wait_for(broken / "checkpoints" / f"step-{step:08d}", process)
        process.send_signal(number)
        assert process.wait(60) == code
    again = run(*arguments(toy_shards, broken, "--steps", "60"))
    assert again.stdout.splitlines()[1:-1] == shown.stdout.splitlines()[1:-1]
    for name in ("model.safetensors", "checkpoints/step-00000060/optimizer.safetensors"):
        assert (whole / name).read_bytes() == (broken / name).read_bytes()


def test_mistakes_end_with_code_2_and_a_hint(toy_shards, tmp_path) -> None:
    out = tmp_path / "run"
    done = run(*arguments(toy_shards, out, "--set", "optimizer.lrr=1"), expected=2)
    assert "did you mean 'optimizer.lr'" in done.stderr
    done = run(*arguments(toy_shards, out, "--steps", "5", "--budget", "1m"), expected=2)
    assert "not both" in done.stderr
    done = run(*arguments(tmp_path, out), expected=2)
    assert "is no corpus" in done.stderr
    assert not out.exists()


@pytest.mark.slow
def test_the_command_proves_that_it_resumes(toy_shards, tmp_path) -> None:
    out = tmp_path / "proof"
    done = run(*arguments(toy_shards, out, "--verify-resume"))
    assert "verified: killed after steps 1, 5, 8, 11 of 12" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_difference_would_be_found(tmp_path) -> None:
    from bertsmith.errors import ResumeError
    from bertsmith.training.pretrain.resume_proof import _compared

    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.safetensors").write_bytes(name.encode())
    with pytest.raises(ResumeError, match=r"model\.safetensors differs"):
        _compared(tmp_path / "whole", tmp_path / "killed")


def test_a_shortened_recipe_keeps_what_matters() -> None:
    from bertsmith.training.pretrain.recipe import load_recipe
    from bertsmith.training.pretrain.resume_proof import STEPS, shortened

    recipe = shortened(load_recipe("fast"))
    assert (recipe.schedule.steps, recipe.schedule.budget) == (STEPS, None)
    assert recipe.optimizer == load_recipe("fast").optimizer
    assert recipe.stages == load_recipe("fast").stages


def _letters(text: str) -> str:
    return "".join(letter for letter in text.lower() if letter.isalnum())


def test_the_demo_trains_and_fills_masks(tmp_path) -> None:
    from bertsmith.demo import pretraining
    from bertsmith.demo.library_docs import passages

    texts = [passage.text for passage in passages()[:300]]
    path = tmp_path / "passages.jsonl"
    path.write_text("".join(json.dumps({"source": "x", "text": t}) + "\n" for t in texts))
    material = pretraining.prepare(texts, path, tmp_path)
    outcome = pretraining.train(material, tmp_path / "bert", 5.0)
    assert outcome.status == "finished"
    asked = pretraining.fill_hidden(tmp_path / "bert", material)
    assert len(asked) == pretraining.QUESTIONS
    for hidden, filled in asked:
        assert hidden.text.count("[MASK]") == len(filled.guesses) == 1
        assert hidden.word.isalpha()
        whole = _letters(hidden.text.replace("[MASK]", hidden.word))
        assert any(whole in _letters(text) for text in texts)
    assert pretraining.curve(tmp_path / "bert").count(" ") == 2


def test_a_sparkline_goes_from_the_first_value_to_the_last() -> None:
    from bertsmith.demo.pretraining import sparkline

    assert sparkline([8.0, 4.0, 1.0], 10) == "8.00 █▄▁ 1.00"
    assert sparkline([], 10) == ""
    assert len(sparkline(list(map(float, range(1000))), 20)) == 20 + len("0.00  999.00")
