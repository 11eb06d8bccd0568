"""Extra files saved next to a model: bertsmith.json, pre-training heads, the fine-tuned task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bertsmith.errors import FolderError
from bertsmith.files.safe_folder import Folder
from bertsmith.folders.tensors import open_weights_file

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    """`json` goes into bertsmith.json; `files` and `tensors` are further files by name.

    Those of `files` hold JSON, those of `tensors` weights.
    """

    json: Mapping[str, Any] = field(default_factory=dict)
    tensors: Mapping[str, Mapping[str, Tensor]] = field(default_factory=dict)
    files: Mapping[str, Any] = field(default_factory=dict)

    def __or__(self, other: Extras) -> Extras:
        return Extras(
            json={**self.json, **other.json},
            tensors={**self.tensors, **other.tensors},
            files={**self.files, **other.files},
        )


NOTHING = Extras()


OWN = "bertsmith.json"
OBJECTIVE_HEADS = "objective_heads.safetensors"
HEADS_KEY = "objective_heads"


def objective_heads(tensors: Mapping[str, Tensor]) -> Extras:
    """Heads of pre-training objectives; their names begin with the objective's."""
    if not tensors:
        return NOTHING
    return Extras(json={HEADS_KEY: OBJECTIVE_HEADS}, tensors={OBJECTIVE_HEADS: tensors})


def read_objective_heads(folder: Folder) -> dict[str, Tensor]:
    """The heads of pre-training objectives by name, float32; none if bertsmith.json names none."""
    record = folder.json_object(OWN) if folder.has(OWN) else {}
    if HEADS_KEY not in record:
        return {}
    name = record[HEADS_KEY]
    if not isinstance(name, str) or not name.endswith(".safetensors"):
        raise FolderError(f"{folder.path / OWN}: {HEADS_KEY} must name a safetensors file")
    return _float32(folder, name)


TASK_KEY = "task"
DATA_KEY = "data"
HEAD = "task_head.safetensors"
KNOWLEDGE = "knowledge.json"  # the graph of a task that reads one


def task_extras(
    section: Mapping[str, Any], head: Mapping[str, Tensor], data: Mapping[str, Any] | None = None
) -> Extras:
    """A task as saved with its model; `head` is empty for published ones.

    `data` is how the training data was read: columns, delimiter, labels.
    """
    record = {TASK_KEY: {**section, "head": HEAD if head else None}}
    record |= {DATA_KEY: dict(data)} if data else {}
    return Extras(json=record, tensors={HEAD: head} if head else {})


def read_task(folder: Folder) -> dict[str, Any] | None:
    """The task section of a folder; None if it was not fine-tuned here."""
    record = folder.json_object(OWN) if folder.has(OWN) else {}
    section = record.get(TASK_KEY)
    if section is None:
        return None
    if not isinstance(section, dict) or not isinstance(section.get("name"), str):
        raise FolderError(f"{folder.path / OWN}: {TASK_KEY} must be a table with a name")
    _check_labels(section.get("labels", []), f"{folder.path / OWN}: labels of the task")
    _check_columns(section, str(folder.path / OWN))
    return section


def _check_labels(labels: object, where: str) -> None:
    """Labels are different strings: equal ones would merge in every prediction."""
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise FolderError(f"{where} must be a list of strings, one per class")
    repeated = [label for label, count in Counter(labels).items() if count > 1]
    if repeated:
        raise FolderError(
            f"{where} has {repeated[0]!r} twice, so predictions of two classes would merge; give "
            "every class a name of its own"
        )


def _check_columns(section: Mapping[str, Any], where: str) -> None:
    """`meta` has a table of numbers for each column, `auxiliary` labels or a mean and a spread."""
    for key in ("meta", "auxiliary"):
        tables = section.get(key, {})
        if not isinstance(tables, dict) or not all(isinstance(t, dict) for t in tables.values()):
            raise FolderError(f"{where}: {key} of the task must hold a table for each column")
    for column, table in section.get("meta", {}).items():
        if not all(type(number) is int for number in table.values()) or sorted(
            table.values()
        ) != list(range(1, len(table) + 1)):
            raise FolderError(
                f"{where}: meta of the task must number the values of {column!r} from 1 to "
                f"{len(table)}"
            )
    for column, table in section.get("auxiliary", {}).items():
        place = f"{where}: auxiliary of the task, {column!r}"
        if "labels" in table:
            _check_labels(table["labels"], f"{place}: labels")
        elif not all(_is_number(table.get(key)) for key in ("mean", "spread")):
            raise FolderError(f"{place} must have labels, or the numbers mean and spread")


def _is_number(value: object) -> bool:
    return type(value) in (int, float)  # a bool is an int to isinstance


def read_data(folder: Folder) -> dict[str, Any] | None:
    """How the training data of a folder was read; None if that is not recorded."""
    section = (folder.json_object(OWN) if folder.has(OWN) else {}).get(DATA_KEY)
    if section is not None and not isinstance(section, dict):
        raise FolderError(f"{folder.path / OWN}: {DATA_KEY} must be a table")
    return section


def read_task_head(folder: Folder, section: Mapping[str, Any]) -> dict[str, Tensor]:
    """The tensors of an own head by name, float32; none if the head is the published one."""
    name = section.get("head")
    if name is None:
        return {}
    if name != HEAD:
        raise FolderError(f"{folder.path / OWN}: the head of a task lies in {HEAD}, not {name!r}")
    return _float32(folder, HEAD)


PAIRS_KEY = "seq2seq"


def read_pair_task(folder: Folder) -> dict[str, Any] | None:
    """How a folder was trained to write from pairs: task and lengths; None if it was not."""
    section = (folder.json_object(OWN) if folder.has(OWN) else {}).get(PAIRS_KEY)
    if section is None:
        return None
    lengths = ("source_tokens", "target_tokens")
    if (
        not isinstance(section, dict)
        or not isinstance(section.get("task"), str)
        or not all(type(section.get(name)) is int and section[name] > 0 for name in lengths)
    ):
        raise FolderError(
            f"{folder.path / OWN}: {PAIRS_KEY} must be a table with task, source_tokens and "
            "target_tokens"
        )
    return section


CORRECTION_KEY = "correction"
DETECTOR = "detector.safetensors"


def correction_extras(section: Mapping[str, Any], detector: Mapping[str, Tensor]) -> Extras:
    """A corrector as saved with its masked LM; `detector` is empty where there is none."""
    return Extras(
        json={CORRECTION_KEY: dict(section)}, tensors={DETECTOR: detector} if detector else {}
    )


def read_correction(folder: Folder) -> dict[str, Any] | None:
    """Threshold, lengths and detector of a corrector; None if the folder is none."""
    section = (folder.json_object(OWN) if folder.has(OWN) else {}).get(CORRECTION_KEY)
    if section is None:
        return None
    if (
        not isinstance(section, dict)
        or not _is_number(section.get("threshold"))
        or not 0 <= section["threshold"] <= 1
        or type(section.get("max_length")) is not int
        or section["max_length"] < 8
        or not isinstance(section.get("detector"), dict)
    ):
        raise FolderError(
            f"{folder.path / OWN}: {CORRECTION_KEY} must be a table with a threshold from 0 to 1, "
            "max_length and a detector"
        )
    return section


def read_detector(folder: Folder) -> dict[str, Tensor]:
    """The tensors of a corrector's detector by name, float32; none if there is no such file."""
    if not folder.has(DETECTOR):
        return {}
    return _float32(folder, DETECTOR)


def read_extras(folder: Folder) -> Extras:
    """The heads of pre-training and the task of fine-tuning, where a folder has them."""
    heads = objective_heads(read_objective_heads(folder))
    pairs = read_pair_task(folder)
    if pairs is not None:
        heads = heads | Extras(json={PAIRS_KEY: pairs})
    correction = read_correction(folder)
    if correction is not None:
        heads = heads | correction_extras(correction, read_detector(folder))
    section = read_task(folder)
    if section is None:
        return heads
    task = task_extras(section, read_task_head(folder, section), read_data(folder))
    graph = {KNOWLEDGE: folder.json_object(KNOWLEDGE)} if "knowledge" in section else {}
    return heads | task | Extras(files=graph)


def _float32(folder: Folder, name: str) -> dict[str, Tensor]:
    """All tensors of a file by name."""
    import torch  # here, because settings of texts are read without it

    with open_weights_file(folder, name, source=OWN) as weights:
        return {one: weights.read(one, dtype=torch.float32) for one in weights.stored}
