"""A predictor on an engine says what it says on plain torch: every task, many batches, pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_finetuning import SHORT, rows, tiny_folder, tiny_job

import bertsmith
from bertsmith.errors import HardwareError
from bertsmith.hardware.choice import choose_path, is_right
from bertsmith.hardware.report import examine
from bertsmith.runtime import selection
from bertsmith.runtime.engines.engine import EagerEngine
from bertsmith.runtime.engines.kinds import engine_paths, engine_probes
from bertsmith.runtime.load_predictor import load_predictor
from bertsmith.runtime.predictor import ModelPredictor, answer_on
from bertsmith.tasks.length import LengthSettings
from bertsmith.tasks.model.layers import HeadSettings
from bertsmith.training.kinds.labeled.learner import finetune
from bertsmith.training.kinds.labeled.recipe import TextVectorSettings

TASKS = ("classify", "multilabel", "regress", "tag", "answer", "choose")
VECTORS = ("published", "first", "mean", "attention")
CASES = [(task, "auto") for task in TASKS] + [("classify", pooling) for pooling in VECTORS]


class SmallBatches(EagerEngine):
    """Torch as an engine: several streams, so that batches end in any order."""

    budget = 40
    streams = 3


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_folder(tmp_path_factory.mktemp("source") / "model", heads=1)


def trained(source: str, out: Path, task: str = "classify", **vector: object) -> ModelPredictor:
    """A model that has seen a few rows."""
    changes: dict[str, object] = {"vector": TextVectorSettings(**vector)}  # type: ignore[arg-type]
    if task == "classify":
        changes["length"] = LengthSettings(max_length=6, stride=2)  # several windows a text
    recipe = SHORT.model_copy(update=changes)
    what = tiny_job(source, out, task, train=rows(24, task), dev=rows(16, task))
    finetune(replace(what, recipe=recipe))
    return load_predictor(out)


def largest_difference(one: Sequence[np.ndarray], two: Sequence[np.ndarray]) -> float:
    return max(float(np.abs(a - b).max()) for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize(("task", "pooling"), CASES)
def test_an_engine_gives_the_same_logits(
    source: str, tmp_path: Path, task: str, pooling: str
) -> None:
    predictor = trained(source, tmp_path / "run", task, pooling=pooling)
    features, plain = predictor.answered(rows(50, task, seed=5))
    encoder = predictor.model.model.encoder
    engine = SmallBatches(encoder, device=torch.device("cpu"), dtype=torch.float32)
    mine = answer_on(predictor.host, engine, predictor.model, features)
    assert len(mine.logits) == len(plain.logits)
    assert largest_difference(mine.logits, plain.logits) < 2e-5


def test_an_engine_gives_the_same_logits_where_tokens_have_a_say(
    source: str, tmp_path: Path
) -> None:
    recipe = SHORT.model_copy(update={"head": HeadSettings(wide=True)})
    train, dev = rows(24), rows(16)
    finetune(tiny_job(source, tmp_path / "run", recipe=recipe, train=train, dev=dev))
    predictor = load_predictor(tmp_path / "run")
    features, plain = predictor.answered(rows(50, seed=5))
    encoder = predictor.model.model.encoder
    engine = SmallBatches(encoder, device=torch.device("cpu"), dtype=torch.float32)
    mine = answer_on(predictor.host, engine, predictor.model, features)
    assert largest_difference(mine.logits, plain.logits) < 2e-5


@pytest.mark.parametrize("task", ["classify", "answer"])
def test_bf16_is_near_and_auto_takes_it_where_it_is_faster(
    source: str, tmp_path: Path, task: str
) -> None:
    found = examine(probes=engine_probes())
    if not any(is_right(finding) for finding in found.findings):
        pytest.skip("this machine has no bf16 kernel")
    exact = trained(source, tmp_path / "run", task)
    fast = load_predictor(tmp_path / "run", precision="bf16")
    asked = rows(50, task, seed=5)
    mine, plain = fast.answered(asked)[1].logits, exact.answered(asked)[1].logits
    assert 0.0 < largest_difference(mine, plain) < 0.02
    auto = bertsmith.load(tmp_path / "run")
    faster = choose_path(found, engine_paths()).probe in engine_probes()
    expected = mine if faster else plain
    assert largest_difference(auto.predictor.answered(asked)[1].logits, expected) == 0.0
    told = bertsmith.load(tmp_path / "run", precision="fp32")
    assert told.predict(asked) == exact.predict(asked)


def test_a_model_that_reads_other_layers_stays_on_torch(source: str, tmp_path: Path) -> None:
    exact = trained(source, tmp_path / "run", pooling="mean", layers="weighted")
    asked = rows(20, seed=5)
    auto = load_predictor(tmp_path / "run", precision="auto")
    assert auto.predict(asked) == exact.predict(asked)
    with pytest.raises(HardwareError, match="reads others"):
        load_predictor(tmp_path / "run", precision="bf16")


def test_the_work_of_all_chunks_together_pays_for_a_faster_engine(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selection, "cached", lambda name, probes: None)
    asked_for: list[float] = []

    def prepare(self: selection.Selection, flops: float) -> selection.Engine:
        asked_for.append(flops)
        return self.engine

    trained(source, tmp_path / "run")
    monkeypatch.setattr(selection.Selection, "prepare", prepare)
    predictor = load_predictor(tmp_path / "run", precision="auto")
    assert len(list(predictor.stream(rows(30), chunk=10))) == 30
    assert len(asked_for) == 3
    assert 0.0 < asked_for[0] < asked_for[1] < asked_for[2]


def test_a_settled_predictor_stays_with_its_engine(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that the parts of a file, and a run that goes on, are computed alike."""
    monkeypatch.setattr(selection, "cached", lambda name, probes: None)
    exact = trained(source, tmp_path / "run")
    assert exact.settle(10**12) == "eager-fp32"
    auto = load_predictor(tmp_path / "run", precision="auto")
    assert auto.settle(10) == "eager-fp32"

    def examine(*_: object, **__: object) -> None:
        raise AssertionError("a settled predictor looked for another engine")

    monkeypatch.setattr(selection, "examine", examine)
    assert auto.settle(10**12) == "eager-fp32"
    assert auto.predict(rows(20, seed=5)) == exact.predict(rows(20, seed=5))
