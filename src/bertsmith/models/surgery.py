"""Copies of models: weights moved from one to another, and whole models on the CPU."""

from __future__ import annotations

import torch
from torch import Tensor

from bertsmith.models.build import Model, build


@torch.no_grad()
def copy_weights(source: Model, target: Model) -> set[str]:
    """Copy parameters of the same name and shape; the names of all that were copied."""
    stored = dict(source.named_parameters())
    copied = set()
    for name, parameter in target.named_parameters():
        if name in stored and stored[name].shape == parameter.shape:
            parameter.copy_(stored[name])
            copied.add(name)
    return copied


@torch.no_grad()
def whole_model(model: Model) -> Model:
    """The model on the CPU in fp32, with whole tensors and ordinary linear layers.

    A collective call if its tensors are sharded.
    """
    tensors = {name: whole_tensor(tensor) for name, tensor in model.named_parameters()}
    fresh = build(model.variant, model.spec, heads=model.head_specs, empty=True)
    for name, parameter in fresh.named_parameters():
        parameter.copy_(tensors[name])
    return fresh


def whole_tensor(tensor: Tensor) -> Tensor:
    """The tensor on the CPU in fp32; a collective call if it is sharded."""
    full = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
    return full.detach().float().cpu()
