"""The best weights: kept by a figure, the end of waiting, the same after any stop."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from toy_training import ToyModel, final_state, saved_tensors, toy_run

from bertsmith.errors import ConfigError
from bertsmith.metrics import better
from bertsmith.training.execution.execution import Execution
from bertsmith.training.execution.stop import StopSignals
from bertsmith.training.loop.averaging import AveragingSettings
from bertsmith.training.loop.best import BestSettings, BestWeights
from bertsmith.training.loop.evaluate import Evaluation, EvaluationSettings
from bertsmith.training.loop.loop import train
from bertsmith.training.loop.progress import Progress
from bertsmith.training.loop.run import Run
from bertsmith.training.optimizers.optimizers import AdamWSettings, build_optimizer, depths


def told(accuracy: float, **more: float) -> Evaluation:
    figures = {"accuracy": accuracy, **more}
    return Evaluation(losses={}, accuracy={}, counts={}, total=0.0, figures=figures)


def evaluated_run(folder: Path, values: dict[int, float], **changes: Any) -> tuple[Run, ToyModel]:
    """A run whose evaluation reads its figure for the step from a table."""
    model = ToyModel()
    steps = {"now": 0}

    def watch(look: Progress) -> None:
        steps["now"] = look.step

    def evaluate() -> Evaluation:
        return told(values[steps["now"]])

    changes = {"best": BestSettings(), "evaluation": EvaluationSettings(every=4), **changes}
    run = toy_run(folder, steps=12, model=model, evaluate=evaluate, watch=watch, **changes)
    return run, model


def test_the_weights_of_the_best_evaluation_are_left_in_the_model(tmp_path: Path) -> None:
    run, model = evaluated_run(tmp_path / "a", {4: 0.5, 8: 0.9, 12: 0.7})
    outcome = train(run)
    assert (outcome.chosen, outcome.evaluation.figures) == ("best", {"accuracy": 0.9})
    kept = saved_tensors(tmp_path / "a" / "checkpoints" / "step-00000012", "best")
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter.detach(), kept[name])
    last, other = evaluated_run(tmp_path / "b", {4: 0.1, 8: 0.2, 12: 0.3})
    train(last)
    assert not torch.equal(other.dense.weight, model.dense.weight)


@pytest.mark.parametrize(("of_mean", "kept"), [(0.95, "average"), (0.6, "last")])
def test_the_mean_of_the_last_weights_competes_with_the_best(
    tmp_path: Path, of_mean: float, kept: str
) -> None:
    run, model = evaluated_run(
        tmp_path, {4: 0.5, 8: 0.9, 12: 0.7}, averaging=AveragingSettings(tail=0.5, every=1)
    )
    evaluate, at_the_end = run.evaluate, []

    def mean_after_last() -> Evaluation:
        found = evaluate()
        if found.figures["accuracy"] == 0.7:
            at_the_end.append(found)
        return told(of_mean) if len(at_the_end) == 2 else found

    outcome = train(replace(run, evaluate=mean_after_last))
    assert outcome.evaluation.figures["accuracy"] == max(0.9, of_mean)
    result = json.loads((tmp_path / "result.json").read_text())
    assert (result["chosen"], result["best"]["weights"]) == ("best", kept)
    stored = saved_tensors(
        tmp_path / "checkpoints" / "step-00000012", {"average": "average", "last": "best"}[kept]
    )
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter.detach(), stored[name])


def test_waiting_ends_a_run_early(tmp_path: Path) -> None:
    values = {0: 0.5, 4: 0.9, 8: 0.5, 12: 1.0}
    run, _ = evaluated_run(tmp_path, values, best=BestSettings(patience=1))
    outcome = train(run)
    assert (outcome.step, outcome.evaluation.figures) == (8, {"accuracy": 0.9})
    assert (tmp_path / "checkpoints" / "step-00000008").is_dir()
    assert train(evaluated_run(tmp_path, values, best=BestSettings(patience=1))[0]).step == 8


def test_a_stopped_run_keeps_its_best(tmp_path: Path) -> None:
    values = {4: 0.9, 8: 0.5, 12: 0.4}
    straight, _ = evaluated_run(tmp_path / "straight", values)
    train(straight)
    first, _ = evaluated_run(tmp_path / "stopped", values)
    watch = first.watch

    def stopping(look: Progress) -> None:
        watch(look)
        if look.step == 6:
            stop.received = "SIGTERM"

    stop = StopSignals()  # not entered: nothing but this test asks
    assert train(replace(first, watch=stopping, execution=Execution(stop=stop))).status == "stopped"
    second, _ = evaluated_run(tmp_path / "stopped", values)
    train(second)
    assert final_state(tmp_path / "stopped") == final_state(tmp_path / "straight")


def test_a_metric_that_is_nan_is_saved_and_loses_to_any_number_after_resuming(
    tmp_path: Path,
) -> None:
    values = {4: math.nan, 8: 0.1, 12: math.nan}
    first, _ = evaluated_run(tmp_path, values)
    watch, stop = first.watch, StopSignals()

    def stopping(look: Progress) -> None:
        watch(look)
        if look.step == 6:
            stop.received = "SIGTERM"

    assert train(replace(first, watch=stopping, execution=Execution(stop=stop))).status == "stopped"
    saved = max((tmp_path / "checkpoints").glob("step-*/state.json"))
    assert json.loads(saved.read_text())["best"]["evaluation"]["figures"] == {"accuracy": None}
    outcome = train(evaluated_run(tmp_path, values)[0])
    assert outcome.evaluation.figures == {"accuracy": 0.1}


def test_of_equal_figures_the_lower_loss_wins() -> None:
    best = BestWeights(ToyModel(), BestSettings(patience=2))
    losses = {1: 0.3, 2: 0.1, 3: 0.2, 4: 0.1, 5: math.nan}
    for step, loss in losses.items():
        best.offer(step, replace(told(0.9), total=loss))
    assert (best.facts["step"], best.facts["waited"], best.is_over) == (2, 3, True)
    best.offer(6, replace(told(0.91), total=5.0))
    assert (best.facts["step"], best.facts["waited"]) == (6, 0)


def test_no_number_beats_nothing_and_a_lower_loss_is_better() -> None:
    model = ToyModel()
    best = BestWeights(model, BestSettings(figure="loss"), better)
    for step, loss in enumerate([math.nan, 3.0, 2.0, 2.5, math.nan], start=1):
        best.offer(step, told(0.0, loss=loss))
    best.offer(5, told(0.0, loss=1.0))  # the same evaluation again counts once
    assert (best.facts["step"], best.facts["waited"]) == (3, 2)
    again = BestWeights(ToyModel(seed=5), BestSettings(figure="loss"), better)
    again.load(best.state(), best.facts)
    assert again.evaluation.figures["loss"] == 2.0


def test_an_unknown_figure_is_named() -> None:
    with pytest.raises(ConfigError, match="accuracy"):
        BestWeights(ToyModel(), BestSettings(figure="acuracy")).offer(1, told(1.0))


def test_rates_fall_from_block_to_block() -> None:
    names = ["head.weight", "model.encoder.blocks.1.x", "model.encoder.blocks.0.x"]
    names += ["model.encoder.embeddings.tokens.weight", "model.encoder.pooler.weight"]
    assert list(depths(names).values()) == [0, 1, 2, 3, 0]
    model = torch.nn.ModuleDict({"encoder": torch.nn.ModuleDict()})
    model["encoder"]["blocks"] = torch.nn.ModuleList(torch.nn.Linear(2, 2) for _ in range(2))
    model["head"] = torch.nn.Linear(2, 2)
    settings = AdamWSettings(lr=1e-2, layer_decay=0.5, head_lr=0.1)
    groups = build_optimizer(model, settings).parts["adamw"].param_groups
    rates = {id(p): group["lr"] for group in groups for p in group["params"]}
    assert len(rates) == 6
    assert rates[id(model["head"].weight)] == rates[id(model["head"].bias)] == 0.1
    blocks = model["encoder"]["blocks"]
    assert [rates[id(block.weight)] for block in blocks] == pytest.approx([2.5e-3, 5e-3])
    assert {g["weight_decay"] for g in groups} == {0.0, 0.01}
