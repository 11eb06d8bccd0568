"""Fine-tuning from rows to a folder: learns, resumes, predicts the same, loads elsewhere."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_finetuning import (
    RECIPE,
    SHORT,
    finetune_seeds,
    finetune_until,
    straight_and_cut,
    tiny_job,
)
from torch import Tensor
from torch.nn import functional as F

from bertsmith.errors import ConfigError, FolderError, TensorMismatchError
from bertsmith.folders.extras import HEAD
from bertsmith.folders.read import load_model
from bertsmith.nn.loss import LossSum
from bertsmith.runtime.load_predictor import load_predictor
from bertsmith.tasks.batch import TaskBatch
from bertsmith.tasks.model.layers import HeadSettings
from bertsmith.training.checkpoints.checkpoint import CHECKPOINTS, SaveSettings
from bertsmith.training.execution.execution import Execution
from bertsmith.training.kinds.labeled.learner import FinetunedTask, finetune
from bertsmith.training.kinds.labeled.recipe import TaskSettings, TextVectorSettings
from bertsmith.training.learner import Trained
from bertsmith.training.recipe import RatedOptimizer


def figure(done: Trained[FinetunedTask]) -> float:
    assert done.dev_figures is not None
    return next(iter(done.dev_figures.values()))


@pytest.mark.parametrize("task", ["classify", "multilabel", "regress", "tag", "answer", "choose"])
def test_a_task_is_learned_and_its_folder_says_the_same(
    source: str, tmp_path: Path, task: str
) -> None:
    what = tiny_job(source, tmp_path / "out", task)
    done = finetune(what)
    assert done.outcome.status == "finished"
    assert figure(done) > 0.8
    said = load_predictor(tmp_path / "out").predict(what.rows.dev)
    assert [one.value for one in said] == [one.value for one in done.finished.predictions]


def test_an_own_head_lies_beside_the_model(source: str, tmp_path: Path) -> None:
    recipe = RECIPE.model_copy(
        update={
            "vector": TextVectorSettings(pooling="mean", layers="weighted"),
            "head": HeadSettings(layers=(16,), batch_norm=True, dropout=0.0),
        }
    )
    what = tiny_job(source, tmp_path / "out", recipe=recipe)
    done = finetune(what)
    assert (tmp_path / "out" / HEAD).is_file()
    predictor = load_predictor(tmp_path / "out")
    said = predictor.predict([example.texts[0] for example in what.rows.dev])
    assert [one.value for one in said] == [one.value for one in done.finished.predictions]
    (tmp_path / "out" / HEAD).unlink()
    with pytest.raises(FolderError, match=HEAD):
        load_predictor(tmp_path / "out")


def test_a_stopped_run_goes_on_to_the_same_weights(source: str, tmp_path: Path) -> None:
    straight_and_cut(source, tmp_path)
    straight, cut = (tmp_path / name / "bertsmith.json" for name in ("straight", "cut"))
    assert cut.read_bytes() == straight.read_bytes()


def test_a_finished_run_keeps_one_checkpoint_and_is_not_made_again(
    source: str, tmp_path: Path
) -> None:
    often = SHORT.model_copy(update={"save": SaveSettings(every=2)})
    job = tiny_job(source, tmp_path, recipe=often)
    done = finetune(job)
    (kept,) = (tmp_path / CHECKPOINTS).iterdir()
    assert kept.name == f"step-{done.outcome.step:08d}"
    steps: list[int] = []
    again = finetune(job, watch=lambda look: steps.append(look.step))
    assert steps == []
    assert again.dev_figures == done.dev_figures


def test_a_changed_setting_is_refused_by_name_unless_accepted(source: str, tmp_path: Path) -> None:
    job = tiny_job(source, tmp_path, recipe=SHORT)
    finetune_until(3, job)
    slower = SHORT.model_copy(update={"optimizer": RatedOptimizer(lr=1e-3)})
    changed = replace(job, recipe=slower)
    with pytest.raises(ConfigError, match=r"optimizer\.lr"):
        finetune(changed)
    done = finetune(replace(changed, accept=["optimizer.lr"]))
    assert done.outcome.status == "finished"


@pytest.mark.parametrize(("evaluations", "looks"), [(2, 12), (1, 6), (0.5, 3), (1 / 6, 1)])
def test_development_rows_are_looked_at_as_often_as_asked(
    source: str, tmp_path: Path, evaluations: float, looks: int
) -> None:
    plan = RECIPE.plan.model_validate({**RECIPE.plan.model_dump(), "evaluations": evaluations})
    finetune(tiny_job(source, tmp_path, recipe=RECIPE.model_copy(update={"plan": plan})))
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    steps = [line["step"] for line in lines if line["kind"] in ("eval", "final")]
    assert len(steps) == looks
    assert steps[-1] == lines[-1]["step"], "the last weights are always judged"


def test_transformers_gives_the_same_logits(source: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    what = tiny_job(source, tmp_path / "out")
    finetune(what)
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "out")
    assert theirs.config.problem_type == "single_label_classification"
    assert theirs.config.id2label == {0: "no", 1: "yes"}
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    predictor = load_predictor(tmp_path / "out")
    texts = [example.texts[0] for example in what.rows.dev[:10]]
    batch = tokenizer(texts, return_tensors="pt", padding=True)
    with torch.no_grad():
        odds = theirs.eval()(**batch).logits.softmax(1).numpy()
    ours = [list(one.probabilities.values()) for one in predictor.predict(texts)]
    np.testing.assert_allclose(ours, odds, atol=1e-5)


def test_a_folder_that_was_not_fine_tuned_is_refused(source: str) -> None:
    with pytest.raises(FolderError, match="was not fine-tuned"):
        load_predictor(source)


def test_a_head_of_another_task_is_refused(source: str, tmp_path: Path) -> None:
    recipe = RECIPE.model_copy(update={"vector": TextVectorSettings(pooling="mean")})
    finetune(tiny_job(source, tmp_path / "out", recipe=recipe))
    path = tmp_path / "out" / "bertsmith.json"
    told = json.loads(path.read_text())
    told["task"]["labels"] = ["a", "b", "c"]
    path.write_text(json.dumps(told))
    path.with_name("hashes.json").unlink()  # the change is ours
    with pytest.raises(TensorMismatchError, match="does not fit the task"):
        load_predictor(tmp_path / "out")


@pytest.mark.parametrize("task", ["tag", "answer"])
def test_a_model_on_rows_has_no_pooler_that_nobody_trained(
    source: str, tmp_path: Path, task: str
) -> None:
    finetune(tiny_job(source, tmp_path / "out", task, recipe=SHORT))
    assert load_model(source).model.spec.pooler
    made = load_model(tmp_path / "out").model
    assert not made.spec.pooler
    assert not [name for name, _ in made.named_parameters() if "pooler" in name]


def test_weights_split_over_ranks_are_refused(source: str, tmp_path: Path) -> None:
    from bertsmith.training.execution.fully_sharded import FullySharded

    class Two(FullySharded):
        world = 2  # type: ignore[assignment]

        def __init__(self) -> None:
            """No group to join."""

        def barrier(self) -> None:
            """Nobody to wait for."""

    recipe = SHORT.model_copy(update={"task": TaskSettings(crf=True)})
    what = tiny_job(source, tmp_path / "out", "tag", recipe=recipe)
    with pytest.raises(ConfigError, match=r"run\.sharding = fsdp is for pre-training"):
        finetune(what, execution=Execution(ranks=Two()))


def test_an_own_loss_takes_the_place_of_the_tasks(source: str, tmp_path: Path) -> None:
    asked = []

    def halved(logits: Tensor, batch: TaskBatch) -> LossSum:
        asked.append(torch.is_grad_enabled())
        total = F.cross_entropy(logits.float(), batch.wanted, reduction="sum") / 2
        return LossSum(total, batch.examples)

    what = tiny_job(source, tmp_path / "own", recipe=SHORT)
    own = finetune(what, loss=halved)
    plain = finetune(tiny_job(source, tmp_path / "plain", recipe=SHORT))
    assert {True, False} == set(asked)  # in training and in judging
    assert own.outcome.last is not None
    assert plain.outcome.last is not None
    # The same gradients but for their length, which Adam does not mind: half the loss at the end.
    ratio = own.outcome.last.losses["task"] / plain.outcome.last.losses["task"]
    assert ratio == pytest.approx(0.5, abs=0.05)
    with pytest.raises(ConfigError, match=r"loss\.own"):
        finetune(tiny_job(source, tmp_path / "own", recipe=SHORT))


def test_a_run_in_memory_ends_with_the_weights_of_one_in_a_folder(
    source: str, tmp_path: Path
) -> None:
    in_memory = finetune(tiny_job(source, None, recipe=SHORT))
    in_folder = finetune(tiny_job(source, tmp_path / "out", recipe=SHORT))
    assert in_memory.dev_figures == in_folder.dev_figures
    assert in_memory.finished is not None
    assert in_folder.finished is not None
    other = in_folder.finished.model.state_dict()
    assert all(
        torch.equal(tensor, other[name])
        for name, tensor in in_memory.finished.model.state_dict().items()
    )
    with pytest.raises(ConfigError, match="has no folder"):
        finetune_seeds(tiny_job(source, None, recipe=SHORT), [1])
