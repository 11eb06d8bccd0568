"""Heads that only pre-training needs, beside a model: a file of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch

from bertsmith.errors import FolderError
from bertsmith.files.safe_folder import Folder
from bertsmith.folders.beside import NOTHING, Beside
from bertsmith.folders.tensors import open_weights_file
from bertsmith.folders.write import OWN

if TYPE_CHECKING:
    from torch import Tensor

OBJECTIVE_HEADS = "objective_heads.safetensors"
KEY = "objective_heads"


def objective_heads(tensors: Mapping[str, Tensor]) -> Beside:
    """Heads as they stand beside a model; their names begin with the objective's."""
    if not tensors:
        return NOTHING
    return Beside(told={KEY: OBJECTIVE_HEADS}, tensors={OBJECTIVE_HEADS: tensors})


def read_objective_heads(folder: Folder) -> dict[str, Tensor]:
    """The heads beside a model by name, float32; none if bertsmith.json does not tell of any."""
    told = folder.json_object(OWN) if folder.has(OWN) else {}
    if KEY not in told:
        return {}
    name = told[KEY]
    if not isinstance(name, str) or not name.endswith(".safetensors"):
        raise FolderError(f"{folder.path / OWN}: {KEY} must name a safetensors file")
    with open_weights_file(folder, name, source=OWN) as weights:
        return {name: weights.read(name, dtype=torch.float32) for name in weights.stored}
