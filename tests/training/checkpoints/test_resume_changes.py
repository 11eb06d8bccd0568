"""A run that goes on under other settings: refused by name, or logged and recorded."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from toy_training import toy_run

from bertsmith.errors import ConfigError
from bertsmith.training.checkpoints.checkpoint import SaveSettings
from bertsmith.training.checkpoints.resume import check_changes, flatten
from bertsmith.training.loop.averaging import AveragingSettings
from bertsmith.training.loop.loop import train
from bertsmith.training.loop.run import Run
from bertsmith.training.loop.schedule import StableSettings
from bertsmith.training.optimizers.optimizers import AdamWSettings, LambSettings

pytestmark = pytest.mark.reliability


def with_facts(run: Run, **facts: Any) -> Run:
    named = {name.replace("__", "."): value for name, value in facts.items()}
    return replace(run, facts={**run.facts, **named})


REFUSED = {
    "data.sha256": lambda run: with_facts(run, data__sha256="e" * 64),
    "vocabulary.sha256": lambda run: with_facts(run, vocabulary__sha256="w" * 64),
    "precision": lambda run: with_facts(run, precision="mkl-bf16"),
    "batch.sequences": lambda run: with_facts(run, batch__sequences=64),
    "mask.rate": lambda run: with_facts(run, mask__rate=0.4),
    "seed": lambda run: replace(run, seed=12),
    "optimizer.lr": lambda run: replace(run, optimizer=AdamWSettings(lr=1e-3)),
    "optimizer.name": lambda run: replace(run, optimizer=LambSettings(lr=5e-3)),
    "schedule.steps": lambda run: replace(run, schedule=StableSettings(steps=48)),
    "averaging.tail": lambda run: replace(run, averaging=AveragingSettings(tail=0.1, every=2)),
}


@pytest.fixture
def started(tmp_path: Path) -> Path:
    def watch(look: Any) -> None:
        if look.step == 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(with_facts(toy_run(tmp_path, watch=watch), batch__sequences=6, mask__rate=0.15))
    return tmp_path


def again(folder: Path) -> Run:
    return with_facts(toy_run(folder), batch__sequences=6, mask__rate=0.15)


@pytest.mark.parametrize("name", REFUSED)
def test_a_change_of_what_is_learned_is_refused_by_name(started: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=rf"step 10 .*{name} was .* and is "):
        train(REFUSED[name](again(started)))
    assert train(again(started)).status == "finished"


@pytest.mark.parametrize("name", ["precision", "mask.rate"])
def test_a_refused_change_goes_through_when_accepted_and_is_recorded(
    started: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    changed = replace(REFUSED[name](again(started)), accept=frozenset({name}))
    with caplog.at_level(logging.WARNING):
        train(changed)
    assert f"since step 10 {name} was" in caplog.text
    state = json.loads((started / "checkpoints/step-00000024/state.json").read_text())
    assert [change["name"] for change in state["changes"]] == [name]


def test_threads_are_logged_and_recorded(started: Path, caplog: pytest.LogCaptureFixture) -> None:
    torch.set_num_threads(2)
    with caplog.at_level(logging.WARNING):
        assert train(again(started)).status == "finished"
    assert "threads was 1 and is 2" in caplog.text
    state = json.loads((started / "checkpoints/step-00000024/state.json").read_text())
    expected = {"step": 10, "name": "threads", "before": "1", "after": "2"}
    assert state["changes"] == [expected]


@pytest.mark.parametrize(
    ("name", "before", "now"),
    [
        ("world", 2, 1),
        ("versions.torch", "2.10.0", "2.13.0"),
        ("machine.instructions", "AVX2", "AVX512"),
        ("batch.micro_tokens", 8192, 4096),
        ("save.every", 10, 20),
    ],
)
def test_what_changes_only_rounding_is_logged(
    name: str, before: Any, now: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        changes = check_changes({name: before}, {name: now}, step=3)
    assert [change["name"] for change in changes] == [name]
    assert name in caplog.text


def test_a_setting_that_is_new_or_gone_is_a_change_too() -> None:
    with pytest.raises(ConfigError, match=r"mask\.rate was not given and is 0\.15"):
        check_changes({}, {"mask.rate": 0.15}, step=3)
    with pytest.raises(ConfigError, match=r"mask\.rate was null and is not given"):
        check_changes({"mask.rate": None}, {}, step=3)


def test_how_often_to_save_may_change(started: Path) -> None:
    assert train(replace(again(started), save=SaveSettings(every=3))).status == "finished"


def test_nested_settings_get_the_names_of_overrides() -> None:
    nested = {"optimizer": {"lr": 1e-4, "betas": (0.9, 0.98)}, "objectives": {"mlm": {"weight": 1}}}
    assert flatten(nested) == {
        "optimizer.lr": 1e-4,
        "optimizer.betas": "[0.9, 0.98]",
        "objectives.mlm.weight": 1,
    }
