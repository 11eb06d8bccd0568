"""What fine-tuning adds to a model folder: the task in bertsmith.json, an own head beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from bertsmith.errors import FolderError
from bertsmith.files.safe_folder import Folder
from bertsmith.folders.beside import Beside
from bertsmith.folders.tensors import open_weights_file
from bertsmith.folders.write import OWN

if TYPE_CHECKING:
    from torch import Tensor

KEY = "task"
HEAD = "task_head.safetensors"


def task_beside(section: Mapping[str, Any], head: Mapping[str, Tensor]) -> Beside:
    """A task as it stands beside a model; `head` is empty for published ones."""
    told = {KEY: {**section, "head": HEAD if head else None}}
    return Beside(told=told, tensors={HEAD: head} if head else {})


def read_task(folder: Folder) -> dict[str, Any] | None:
    """The task section of a folder; None if it was not fine-tuned here."""
    told = folder.json_object(OWN) if folder.has(OWN) else {}
    section = told.get(KEY)
    if section is None:
        return None
    if not isinstance(section, dict) or not isinstance(section.get("name"), str):
        raise FolderError(f"{folder.path / OWN}: {KEY} must be a table with a name")
    return section


def read_task_head(folder: Folder, section: Mapping[str, Any]) -> dict[str, Tensor]:
    """The tensors of an own head by name, float32; none if the head is the published one."""
    name = section.get("head")
    if name is None:
        return {}
    if name != HEAD:
        raise FolderError(f"{folder.path / OWN}: the head of a task lies in {HEAD}, not {name!r}")
    with open_weights_file(folder, HEAD, source=OWN) as weights:
        return {one: weights.read(one, dtype=torch.float32) for one in weights.stored}
