"""Several models that answer as one: means of probabilities, of logits on rows, of thresholds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_finetuning import SHORT, finetune_seeds, rows, tiny_job

from bertsmith.errors import ConfigError, FolderError
from bertsmith.metrics import TAGS
from bertsmith.nn.crf import Crf
from bertsmith.runtime.ensemble import Ensemble, joint_logits, joint_task, load_ensemble, runs_below
from bertsmith.runtime.load_predictor import load_predictor
from bertsmith.runtime.predictor import ModelPredictor, Predictor
from bertsmith.tasks.length import LengthSettings
from bertsmith.tasks.prediction import PredictedAnswer
from bertsmith.tasks.regress import Regress
from bertsmith.tasks.tag.tag import Tag
from bertsmith.training.kinds.labeled.learner import finetune
from bertsmith.training.kinds.labeled.recipe import PlanSettings, TaskSettings

TASKS = ["classify", "multilabel", "regress", "tag", "answer", "choose"]
QUICK = SHORT.model_copy(update={"plan": PlanSettings(epochs=1, batch=16)})


@pytest.fixture(scope="module")
def trained(source: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Predictor]]:
    """Two models a task, each of another seed."""
    home = tmp_path_factory.mktemp("trained")
    found: dict[str, list[Predictor]] = {}
    for task in TASKS:
        what = tiny_job(source, home / task, task, train=rows(24, task), dev=rows(16, task))
        many = finetune_seeds(replace(what, recipe=QUICK), [0, 1])
        found[task] = [load_predictor(one.folder) for one in many.members]
    return found


@pytest.mark.parametrize("task", ["classify", "multilabel", "choose"])
def test_probabilities_are_means(trained: dict[str, list[Predictor]], task: str) -> None:
    asked = rows(20, task, seed=5)
    each = [one.predict(asked) for one in trained[task]]
    joint = Ensemble(trained[task]).predict(asked)
    for number, said in enumerate(joint):
        for name, value in said.probabilities.items():
            mean = np.mean([some[number].probabilities[name] for some in each])
            assert value == pytest.approx(mean, abs=1e-5)
    if task != "multilabel":
        assert [one.confidence for one in joint] == [
            pytest.approx(max(one.probabilities.values())) for one in joint
        ]


def test_numbers_are_means_on_the_scale_of_the_data(trained: dict[str, list[Predictor]]) -> None:
    asked = rows(20, "regress", seed=5)
    each = [[one.value for one in model.predict(asked)] for model in trained["regress"]]
    joint = [one.value for one in Ensemble(trained["regress"]).predict(asked)]
    np.testing.assert_allclose(joint, np.mean(each, axis=0), rtol=1e-5, atol=1e-5)
    # Models of other rows have other scales.
    tasks = [Regress(mean=0.0, spread=1.0), Regress(mean=100.0, spread=10.0)]
    one, two = np.array([2.0], dtype=np.float32), np.array([-1.0], dtype=np.float32)
    assert joint_logits(tasks, [[one], [two]])[0].tolist() == [46.0]
    assert joint_task(tasks) == Regress()


@pytest.mark.parametrize("task", TASKS)
def test_one_model_is_an_ensemble_that_says_the_same(
    trained: dict[str, list[Predictor]], task: str
) -> None:
    asked = rows(20, task, seed=5)
    alone = trained[task][0].predict(asked)
    joint = Ensemble(trained[task][:1]).predict(asked)
    twice = Ensemble([trained[task][0]] * 2).predict(asked)
    for plain, one, two in zip(alone, joint, twice, strict=True):
        for other in (one, two):
            if isinstance(plain.value, float):
                assert other.value == pytest.approx(plain.value, rel=1e-5)
            elif isinstance(plain.value, PredictedAnswer):
                assert isinstance(other.value, PredictedAnswer)
                assert other.value.text == plain.value.text
            else:
                assert other.value == plain.value
            assert other.cut == plain.cut


@pytest.mark.parametrize("task", ["tag", "answer"])
def test_models_on_rows_average_logits(trained: dict[str, list[Predictor]], task: str) -> None:
    asked = rows(10, task, seed=5)
    each = [model.answered(asked)[1].logits for model in trained[task]]
    features, joint = Ensemble(trained[task]).answered(asked)
    assert len(features) == len(joint.logits)
    for number, logits in enumerate(joint.logits):
        np.testing.assert_allclose(
            logits, np.mean([one[number] for one in each], axis=0), atol=1e-5
        )


def test_thresholds_and_scores_of_neighbors_are_means() -> None:
    labels = ("O", "B-a", "I-a")
    first, second = Crf(3), Crf(3)
    with torch.no_grad():
        first.between.fill_(1.0)
        second.between.fill_(3.0)
    joint = joint_task([Tag(labels=labels, crf=first), Tag(labels=labels, crf=second)])
    assert isinstance(joint, Tag)
    assert joint.crf is not None
    assert torch.equal(joint.crf.between, torch.full((3, 3), 2.0))
    with pytest.raises(ConfigError, match="in all of them or in none"):
        joint_task([Tag(labels=labels, crf=first), Tag(labels=labels)])


def test_thresholds_of_labels_are_means(trained: dict[str, list[Predictor]]) -> None:
    given = [one.task.thresholds for one in trained["multilabel"]]
    joint = Ensemble(trained["multilabel"]).task
    np.testing.assert_allclose(joint.thresholds, np.mean(given, axis=0))


def test_models_of_several_tasks_or_vocabularies_are_refused(
    trained: dict[str, list[Predictor]],
) -> None:
    with pytest.raises(ConfigError, match="same task and labels"):
        Ensemble([trained["classify"][0], trained["multilabel"][0]])
    one = trained["tag"][1]
    other = ModelPredictor(one.host, one.model, lengths=LengthSettings(max_length=16), tables={})
    with pytest.raises(ConfigError, match="same length settings"):
        Ensemble([trained["tag"][0], other])
    with pytest.raises(ConfigError, match="one model or more"):
        Ensemble([])


def test_models_that_read_less_say_what_they_cut(trained: dict[str, list[Predictor]]) -> None:
    one = trained["classify"][1]
    short = ModelPredictor(one.host, one.model, lengths=LengthSettings(max_length=4), tables={})
    said = Ensemble([trained["classify"][0], short]).predict(["red green blue round"])
    assert said[0].cut == 2


def test_a_folder_of_seeds_loads_as_one(source: str, tmp_path: Path) -> None:
    what = tiny_job(source, tmp_path / "out", train=rows(48), dev=rows(24), recipe=QUICK)
    many = finetune_seeds(what, [10, 9, 2])
    assert [path.name for path in runs_below(what.out)] == ["2", "9", "10"]
    joint = load_ensemble([what.out])
    assert len(joint.members) == 3
    named = load_ensemble([one.folder for one in many.members])
    asked = [row.texts for row in rows(10, seed=5)]
    assert [one.value for one in joint.predict(asked)] == [
        one.value for one in named.predict(asked)
    ]
    with pytest.raises(FolderError, match="holds no runs to average"):
        load_ensemble([source])


def test_an_ensemble_with_a_crf_gives_legal_tags(source: str, tmp_path: Path) -> None:
    recipe = QUICK.model_copy(update={"task": TaskSettings(crf=True)})
    models = []
    for seed in (0, 1):
        run = recipe.run.model_copy(update={"seed": seed})
        what = tiny_job(
            source,
            tmp_path / str(seed),
            "tag",
            train=rows(32, "tag"),
            dev=rows(16, "tag"),
            recipe=recipe.model_copy(update={"run": run}),
        )
        finetune(what)
        models.append(load_predictor(what.out))
    joint = Ensemble(models)
    asked = rows(12, "tag", seed=5)
    said = joint.predict(asked)
    truth, given = joint.task.truth(asked), joint.task.predicted(said)
    assert TAGS.score(truth, given, joint.task.labels)["f1"] >= 0.0
    for one in said:
        before = "O"
        for tag in one.tags:
            assert not tag.startswith("I-") or before[1:] == tag[1:]
            before = tag


def test_the_models_are_computed_as_was_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, object]] = []
    made: list[object] = []

    def stands_in(name: Path, **settings: object) -> None:
        asked.append({"name": name.name, **settings})

    monkeypatch.setattr("bertsmith.runtime.ensemble.load_predictor", stands_in)
    monkeypatch.setattr("bertsmith.runtime.ensemble.Ensemble", made.append)
    load_ensemble([tmp_path / "a", tmp_path / "b"], precision="auto", threads=1)
    alike = {"device": "cpu", "precision": "auto", "threads": 1, "knowledge": None}
    assert asked == [{"name": "a", **alike}, {"name": "b", **alike}]
    assert made == [[None, None]]
