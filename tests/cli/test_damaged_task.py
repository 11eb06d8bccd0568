"""A task section of bertsmith.json with wrong types or equal labels: an error of ours, named."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import run
from tiny_finetuning import SHORT, rows, tiny_folder, tiny_job

from bertsmith.errors import BertsmithError, FolderError
from bertsmith.runtime.load_predictor import load_predictor
from bertsmith.training.kinds.labeled.learner import finetune

pytestmark = pytest.mark.usefixtures("edited_folders")

ODD: list[Any] = [
    *(None, True, -1, 10**30, 1.5, "x", [], ["a"], ["0", "0"], [1, 2], [["a"]], {}, {"a": 1}),
    *({"a": {"b": "c"}}, {"a": {"b": 7}}, {"a": ["x"]}, {"a": {"labels": ["b", "b"]}}),
]
TASKS = ["classify", "multilabel", "regress", "tag", "answer", "choose"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A fine-tuned folder of each task, hardly trained."""
    home = tmp_path_factory.mktemp("tasks")
    source = tiny_folder(home / "model")
    for task in TASKS:
        finetune(tiny_job(source, home / task, task, recipe=SHORT))
    return {task: home / task for task in TASKS}


def damaged(section: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every value replaced by every odd one, and every value missing."""
    for key in section:
        if key == "name":
            continue
        for odd in ODD:
            if odd != section[key]:
                yield {**copy.deepcopy(section), key: odd}
        yield {other: value for other, value in section.items() if other != key}


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_any_damage_is_an_error_of_ours_or_harmless(
    folders: dict[str, Path], tmp_path: Path, task: str
) -> None:
    folder = shutil.copytree(folders[task], tmp_path / "copy")
    record = json.loads((folder / "bertsmith.json").read_text())
    refused, codes = 0, set()
    for section in damaged(record["task"]):
        (folder / "bertsmith.json").write_text(json.dumps({**record, "task": section}))
        try:
            (prediction,) = load_predictor(folder).predict([rows(1, task)[0].texts])
            json.dumps(prediction.to_json())
        except BertsmithError as error:
            codes.add(error.exit_code)
            refused += 1
    assert refused > 40
    assert codes == {2}


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("labels", ["0", "0"], "labels of the task has '0' twice"),
        ("labels", "no", "labels of the task must be a list of strings"),
        ("labels", [0, 1], "labels of the task must be a list of strings"),
        ("labels", ["no", "yes", "maybe"], "has 2 outputs, and classify with its labels needs 3"),
        ("meta", ["a"], "meta of the task must hold a table for each column"),
        ("meta", {"site": {"a": "x"}}, "meta of the task must number the values of 'site'"),
        ("meta", {"site": {"a": 1, "b": 1}}, "must number the values of 'site' from 1 to 2"),
        ("auxiliary", {"site": {"labels": ["a", "a"]}}, "'site': labels has 'a' twice"),
        ("auxiliary", {"site": {"mean": "a"}}, "must have labels, or the numbers mean and spread"),
        ("length", [], "length of the task in bertsmith.json is []; it must be a table"),
    ],
)
def test_the_command_line_names_what_is_wrong(
    classifier: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    key: str,
    value: object,
    message: str,
) -> None:
    folder = shutil.copytree(classifier, tmp_path / "copy")
    record = json.loads((folder / "bertsmith.json").read_text())
    record["task"][key] = value
    (folder / "bertsmith.json").write_text(json.dumps(record))
    assert run("predict", folder, "a red bird") == 2
    shown = capsys.readouterr().err
    assert message in shown
    assert str(folder) in shown or key == "labels"


def test_equal_labels_in_config_json_are_refused(classifier: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(classifier, tmp_path / "copy")
    config = json.loads((folder / "config.json").read_text())
    config["id2label"] = {"0": "same", "1": "same"}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(BertsmithError, match="id2label calls two classes 'same'"):
        load_predictor(folder)


def test_a_section_without_a_name_is_refused(classifier: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(classifier, tmp_path / "copy")
    (folder / "bertsmith.json").write_text('{"task": {"labels": ["a"]}}')
    with pytest.raises(FolderError, match="task must be a table with a name"):
        load_predictor(folder)
