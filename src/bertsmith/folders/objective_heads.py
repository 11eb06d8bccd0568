"""Heads that only training needs, beside a model: a file of their own, named in bertsmith.json.

They are no part of a published model, so `model.safetensors` must not hold them: other libraries
would complain about tensors they do not know.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from bertsmith.errors import FolderError, TensorMismatchError
from bertsmith.folders.safe import Folder
from bertsmith.folders.tensors import open_weights_file
from bertsmith.folders.write import OWN, write_tensors
from bertsmith.staged import sync, write_staged

if TYPE_CHECKING:
    from torch import Tensor

OBJECTIVE_HEADS = "objective_heads.safetensors"
KEY = "objective_heads"


def add_objective_heads(folder: Path, tensors: Mapping[str, Tensor]) -> None:
    """Put heads into a model folder that nobody reads yet; names begin with the objective's."""
    for name, tensor in tensors.items():
        if not bool(torch.isfinite(tensor).all()):
            raise TensorMismatchError(f"{name} holds values that are not finite; nothing was saved")
    write_tensors(folder / OBJECTIVE_HEADS, tensors)
    sync(folder / OBJECTIVE_HEADS)
    told = json.loads((folder / OWN).read_bytes()) | {KEY: OBJECTIVE_HEADS}
    write_staged(folder / OWN, (json.dumps(told, indent=2) + "\n").encode())


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
