"""The model folder that comes out of pre-training."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from bertsmith.files.atomic_folder import result_folder
from bertsmith.folders.extras import OBJECTIVE_HEADS, objective_heads
from bertsmith.folders.write import save_model
from bertsmith.models.build import Model, build
from bertsmith.objectives.program import PretrainModule
from bertsmith.text.tokenizer import Tokenizer


def save_result(module: PretrainModule, tokenizer: Tokenizer, out: Path, *, write: bool) -> None:
    """Put the model folder into `out`, companions (ELECTRA's generator) into folders inside.

    Heads that published models do not have get a file of their own. With sharded weights
    every rank must call this; only the one with `write` touches the disk.
    """
    model = _plain(module.model)
    companions = {
        name: _plain(one) for name, one in module.companions.items() if isinstance(one, Model)
    }
    own = {name: _whole(tensor) for name, tensor in module.own_heads.named_parameters()}
    if not write:
        return
    for name, companion in companions.items():
        save_model(companion, tokenizer, out / name, overwrite=True)
    with result_folder(out) as staging:
        save_model(model, tokenizer, staging, extras=objective_heads(own))
    if not own:
        (out / OBJECTIVE_HEADS).unlink(missing_ok=True)  # of a run with other objectives


def _plain(model: Model) -> Model:
    """The model on the CPU with whole tensors; a collective call if they are sharded."""
    tensors = {name: _whole(tensor) for name, tensor in model.named_parameters()}
    fresh = build(model.variant, model.spec, heads=model.head_specs, empty=True)
    _put(fresh, tensors)
    return fresh


def _whole(tensor: Tensor) -> Tensor:
    full = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
    return full.detach().float().cpu()


@torch.no_grad()
def _put(module: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    for name, parameter in module.named_parameters():
        parameter.copy_(tensors[name])
