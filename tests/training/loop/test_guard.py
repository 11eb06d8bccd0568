"""Numbers that are no numbers: found before the optimizer's step, named, never saved."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from toy_training import ToyModel, ToyWork, saved_tensors, toy_run

from bertsmith.errors import DivergedError
from bertsmith.nn.loss import LossSum
from bertsmith.training.checkpoints.checkpoint import Checkpoints
from bertsmith.training.loop.guard import finite
from bertsmith.training.loop.loop import train
from bertsmith.training.loop.progress import Progress
from bertsmith.training.loop.run import Run
from bertsmith.training.optimizers.optimizers import AdamWSettings

pytestmark = pytest.mark.reliability


class Planted(ToyWork):
    """Breaks the numbers of one step in one of several ways."""

    kind = ""
    at = 0
    value = math.nan

    def loss(self, model: nn.Module, batch: Any) -> tuple[dict[str, LossSum], dict[str, Any]]:
        assert isinstance(model, ToyModel)
        parts, scores = super().loss(model, batch)
        if model.training and self.now == self.at:
            word = parts["word"]
            if self.kind == "loss":
                parts = {**parts, "word": LossSum(word.sum * self.value, word.count)}
            if self.kind == "gradient":
                poison = model.dense.weight.sum() * 0.0
                poison.register_hook(lambda grad: grad * self.value)
                parts = {**parts, "word": LossSum(word.sum + poison, word.count)}
        return parts, scores

    now = 0


def planted_run(folder: Path, kind: str, at: int, value: float = math.nan) -> Run:
    work = Planted()
    work.kind, work.at, work.value = kind, at, value
    model = ToyModel()
    if kind == "nothing":
        work.plant = {at: "nothing"}
        work.weights = {"word": 1.0}

        def only_words(batch: Any) -> dict[str, int]:
            return {"word": int((batch.targets >= 0).sum())}

        work.counts = only_words  # type: ignore[method-assign]

    def watch(look: Progress) -> None:
        work.now = look.step
        if look.step == at and kind == "weight":
            with torch.no_grad():
                model.dense.weight[1, 2] = value
        if look.step == at and kind == "embedding":
            with torch.no_grad():
                model.tokens.weight[:, 0] = value

    return toy_run(folder, model=model, workload=work, watch=watch)


CASES = [
    (kind, at, value)
    for kind in ("weight", "embedding", "loss", "gradient")
    for at, value in ((1, math.nan), (6, math.inf), (13, -math.inf), (19, math.nan))
]


@pytest.mark.parametrize(("kind", "at", "value"), CASES)
def test_a_planted_number_stops_the_run_before_the_step_and_nothing_bad_is_saved(
    tmp_path: Path, kind: str, at: int, value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[int] = []
    plain = torch.optim.AdamW.step
    monkeypatch.setattr(
        torch.optim.AdamW, "step", lambda self, *a: (steps.append(1), plain(self, *a))[1]
    )
    run = planted_run(tmp_path, kind, at, value)
    with pytest.raises(DivergedError) as caught:
        train(run)
    assert len(steps) == at
    message = str(caught.value)
    assert re.search(rf"step {at}, examples {at * 6} to {at * 6 + 5}, learning rate", message)
    assert "gradient norm" in message
    named = {"weight": "dense.weight", "embedding": "tokens.weight", "loss": "word"}
    assert named.get(kind, "dense.weight") in message
    found = every_saved_tensor(tmp_path)
    assert all(finite(tensor) for _, tensor in found)
    if kind in ("loss", "gradient"):
        assert f"saved at step {at}" in message
        assert Checkpoints(tmp_path / "checkpoints").newest().step == at  # type: ignore[union-attr]
    elif at > 5:
        assert Checkpoints(tmp_path / "checkpoints").newest().step == at // 5 * 5  # type: ignore[union-attr]


def test_a_broken_run_keeps_the_older_checkpoints_and_can_go_on(tmp_path: Path) -> None:
    with pytest.raises(DivergedError):
        train(planted_run(tmp_path, "loss", 13))
    assert Checkpoints(tmp_path / "checkpoints").steps() == [5, 10, 13]
    assert train(toy_run(tmp_path)).status == "finished"
    train(toy_run(tmp_path / "straight"))
    name = "checkpoints/step-00000024/model.safetensors"
    assert (tmp_path / name).read_bytes() == (tmp_path / "straight" / name).read_bytes()


def test_a_rate_without_measure_is_stopped_with_finite_checkpoints_only(tmp_path: Path) -> None:
    run = toy_run(tmp_path, optimizer=AdamWSettings(lr=1e38))
    with pytest.raises(DivergedError, match="learning rate"):
        train(run)
    assert all(finite(tensor) for _, tensor in every_saved_tensor(tmp_path))


def test_a_batch_without_any_question_is_named(tmp_path: Path) -> None:
    class OnlyWords(ToyWork):
        def counts(self, batch: Any) -> dict[str, int]:
            return {"word": super().counts(batch)["word"]}

        def loss(self, model: nn.Module, batch: Any) -> tuple[dict[str, LossSum], dict[str, Any]]:
            parts, scores = super().loss(model, batch)
            return {"word": parts["word"]}, scores

    work = OnlyWords(parts={"word": 1.0}, plant={9: "nothing"})
    with pytest.raises(DivergedError, match=r"step 9, examples 54 to 59.*nothing to predict"):
        train(toy_run(tmp_path, workload=work))


def test_a_part_without_questions_is_left_out_of_the_step(tmp_path: Path) -> None:
    work = ToyWork(plant={9: "nothing"})
    assert train(toy_run(tmp_path, workload=work)).status == "finished"


def test_a_state_that_breaks_in_the_last_step_is_not_saved(tmp_path: Path) -> None:
    def watch(look: Progress) -> None:
        if look.step == 24:
            with torch.no_grad():
                run.model.dense.weight[0, 0] = math.inf  # type: ignore[union-attr]

    run = replace(toy_run(tmp_path), watch=watch)
    with pytest.raises(DivergedError, match=r"dense\.weight of the model is not finite"):
        train(run)
    assert Checkpoints(tmp_path / "checkpoints").steps() == [15, 20]


def every_saved_tensor(folder: Path) -> list[tuple[str, Tensor]]:
    found: list[tuple[str, Tensor]] = []
    for path in sorted((folder / "checkpoints").glob("step-*/*.safetensors")):
        found.extend(saved_tensors(path.parent, path.stem).items())
    return found


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_one_odd_value_among_many_is_seen(value: float) -> None:
    tensor = torch.randn(1000)
    assert finite(tensor)
    assert finite(torch.full((10,), 3e38))
    tensor[123] = value
    assert not finite(tensor)
