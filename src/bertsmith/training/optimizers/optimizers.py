"""Optimizers by name: AdamW with BERT's settings, LAMB, Muon with AdamW for the rest."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from bertsmith.config import Positive, Settings, Share
from bertsmith.errors import TensorMismatchError
from bertsmith.training.optimizers.lamb import Lamb
from bertsmith.training.optimizers.muon import Muon

_BLOCK = re.compile(r"\b(encoder|decoder)\.blocks\.(\d+)\.")
_EMBEDDINGS = re.compile(r"\b(encoder|decoder)\.embeddings\.")


def depths(names: Iterable[str]) -> dict[str, int]:
    """How far below the head each parameter stands: 0 for heads, 1 for the top block.

    A decoder stands on its encoder. Blocks that share their weights count as the one that the name
    gives, the lowest.
    """
    listed = list(names)
    blocks = {"encoder": 0, "decoder": 0}
    for name in listed:
        if match := _BLOCK.search(name):
            blocks[match[1]] = max(blocks[match[1]], int(match[2]) + 1)
    above = {"encoder": blocks["decoder"], "decoder": 0}
    depth = {}
    for name in listed:
        if match := _BLOCK.search(name):
            depth[name] = above[match[1]] + blocks[match[1]] - int(match[2])
        else:
            depth[name] = sum(blocks.values()) + 1 if _EMBEDDINGS.search(name) else 0
    return depth


Betas = Annotated[tuple[Share, Share], Field(strict=False)]  # TOML has lists, no tuples
SMALLEST_SIDE = 16  # a classifier of a few classes is an output, not a matrix that mixes features
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class AdamWShape(Settings):
    """Adam with decoupled decay, all but its rate; the defaults are BERT's (Devlin et al. 2018)."""

    name: Literal["adamw"] = "adamw"
    betas: Betas = (0.9, 0.999)
    eps: Positive = 1e-6
    weight_decay: NotNegative = 0.01
    clip: Positive | None = 1.0  # the largest norm of all gradients together
    layer_decay: Annotated[float, Field(gt=0, le=1)] = 1.0  # of the rate, from block to block down
    head_lr: Positive | None = None  # of what stands above the encoder; None: as `lr`


class AdamWSettings(AdamWShape):
    """AdamW with its rate."""

    lr: Positive = 1e-4


class LambSettings(Settings):
    """LAMB, for large batches and high rates."""

    name: Literal["lamb"] = "lamb"
    lr: Positive = 7e-3
    betas: Betas = (0.9, 0.98)
    eps: Positive = 1e-6
    weight_decay: NotNegative = 0.1
    clip: Positive | None = 2.0


class MuonSettings(Settings):
    """Muon for the matrices of the blocks, AdamW for embeddings, biases, norms and outputs."""

    name: Literal["muon"] = "muon"
    lr: Positive = 1e-3  # of the matrices; scaled so that rates of AdamW fit
    momentum: Share = 0.95
    rest_lr: Positive = 1e-3
    betas: Betas = (0.9, 0.98)
    eps: Positive = 1e-6
    weight_decay: NotNegative = 0.01
    clip: Positive | None = 1.0


OptimizerSettings = Annotated[
    AdamWSettings | LambSettings | MuonSettings, Field(discriminator="name")
]


class Optimizers:
    """One or more torch optimizers that step together, with one state by parameter name."""

    def __init__(self, parts: Mapping[str, torch.optim.Optimizer], model: nn.Module) -> None:
        self.parts = dict(parts)
        named = model.named_parameters()
        self._names: dict[Tensor, str] = {parameter: name for name, parameter in named}
        for group in self._groups():
            group["peak"] = group["lr"]

    def set_rate(self, factor: float) -> None:
        """Learning rates as a share of their peaks."""
        for group in self._groups():
            group["lr"] = group["peak"] * factor

    @property
    def rate(self) -> float:
        """The learning rate of the first group, for the log."""
        return float(next(self._groups())["lr"])

    def step(self) -> None:
        """Step all."""
        for part in self.parts.values():
            part.step()

    def zero_grad(self) -> None:
        """Drop all gradients."""
        for part in self.parts.values():
            part.zero_grad(set_to_none=True)

    def state(self) -> dict[str, Tensor]:
        """Every tensor of state, named part:key:parameter."""
        return {
            f"{name}:{key}:{self._names[parameter]}": value
            for name, part in self.parts.items()
            for parameter, entries in part.state.items()
            for key, value in entries.items()
        }

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Replace the state by what `state` gave."""
        owners = {name: parameter for parameter, name in self._names.items()}
        for part in self.parts.values():
            part.state.clear()
        for full, tensor in tensors.items():
            name, _, rest = full.partition(":")
            key, _, owner = rest.partition(":")
            if name not in self.parts or owner not in owners:
                raise TensorMismatchError(
                    f"the optimizer state {full!r} belongs to no parameter of this model and "
                    "optimizer; the checkpoint is of another run"
                )
            self.parts[name].state[owners[owner]][key] = (
                self._counter(name, tensor, owners[owner])
                if key == "step"
                else sharded_like(tensor, owners[owner])
            )

    def _counter(self, part: str, tensor: Tensor, owner: Tensor) -> Tensor:
        """A step counter where its optimizer wants it: for AdamW next to the parameter."""
        fused = isinstance(self.parts[part], torch.optim.AdamW)
        return tensor.detach().clone().to(owner.device if fused else "cpu")

    def _groups(self) -> Iterator[dict[str, Any]]:
        for part in self.parts.values():
            yield from part.param_groups


def build_optimizer(model: nn.Module, settings: OptimizerSettings) -> Optimizers:
    """The optimizer for a model: decay on matrices only, never on biases and norms."""
    decayed, plain = split_decay(model)
    if isinstance(settings, MuonSettings):
        return Optimizers(_muon(model, settings), model)
    groups = _groups(decayed, plain, settings.weight_decay)
    if isinstance(settings, LambSettings):
        for group in groups:
            group["trust"] = group["params"] is decayed
        lamb = Lamb(groups, lr=settings.lr, betas=settings.betas, eps=settings.eps)
        return Optimizers({"lamb": lamb}, model)
    shared = {"lr": settings.lr, "betas": settings.betas, "eps": settings.eps}
    if settings.layer_decay < 1 or settings.head_lr is not None:
        groups = _by_depth(model, groups, settings)
    return Optimizers({"adamw": _adamw(groups, shared)}, model)


def split_decay(model: nn.Module) -> tuple[list[Tensor], list[Tensor]]:
    """Parameters with decay (two dimensions or more) and without (biases and norms)."""
    every = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return [p for p in every if p.dim() > 1], [p for p in every if p.dim() <= 1]


def _muon(model: nn.Module, settings: MuonSettings) -> dict[str, torch.optim.Optimizer]:
    """Matrices that mix features go to Muon; tables of rows and narrow outputs do not."""
    tables = {
        id(parameter)
        for module in model.modules()
        if isinstance(module, nn.Embedding)
        for parameter in module.parameters(recurse=False)
    }
    decayed, plain = split_decay(model)
    mixing = {id(p) for p in decayed if p.dim() == 2 and min(p.shape) >= SMALLEST_SIDE} - tables
    matrices = [p for p in decayed if id(p) in mixing]
    rest = [p for p in decayed if id(p) not in mixing]
    shared = {"lr": settings.rest_lr, "betas": settings.betas, "eps": settings.eps}
    groups = _groups(rest, plain, settings.weight_decay)
    parts: dict[str, torch.optim.Optimizer] = {}
    if matrices:
        parts["muon"] = Muon(
            matrices,
            lr=settings.lr,
            momentum=settings.momentum,
            weight_decay=settings.weight_decay,
            adjust_lr_fn="match_rms_adamw",
        )
    if groups:
        parts["adamw"] = _adamw(groups, shared)
    return parts


def _groups(decayed: list[Tensor], plain: list[Tensor], decay: float) -> list[dict[str, Any]]:
    groups: list[dict[str, Any]] = [
        {"params": decayed, "weight_decay": decay},
        {"params": plain, "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]


def _by_depth(
    model: nn.Module, groups: list[dict[str, Any]], settings: AdamWSettings
) -> list[dict[str, Any]]:
    """The groups split by how far below the head their parameters stand, each with its rate."""
    named = {id(parameter): name for name, parameter in model.named_parameters()}
    depth = depths(named.values())
    by_depth: dict[tuple[int, int], dict[str, Any]] = {}
    for number, group in enumerate(groups):
        for parameter in group["params"]:
            below = depth[named[id(parameter)]]
            rate = settings.lr * settings.layer_decay**below
            if below == 0 and settings.head_lr is not None:
                rate = settings.head_lr
            entry = {"params": [], "weight_decay": group["weight_decay"], "lr": rate}
            by_depth.setdefault((below, number), entry)["params"].append(parameter)
    return [by_depth[key] for key in sorted(by_depth)]


def _adamw(groups: list[dict[str, Any]], shared: dict[str, Any]) -> torch.optim.Optimizer:
    kinds = {parameter.device.type for group in groups for parameter in group["params"]}
    fused = kinds <= {"cpu", "cuda", "mps", "xpu"}
    return torch.optim.AdamW(groups, fused=fused, **shared)


def sharded_like(tensor: Tensor, owner: Tensor) -> Tensor:
    """A copy of a whole tensor on the owner's device, or this rank's shard if the owner is one.

    A tensor that is sharded already is taken as it is. No rank needs another for this.
    """
    mesh = getattr(owner, "device_mesh", None)
    if mesh is None:
        return tensor.detach().clone().to(owner.device)
    if hasattr(tensor, "device_mesh"):
        return tensor
    from torch.distributed.tensor import DTensor, distribute_tensor

    if not isinstance(owner, DTensor):
        raise TypeError(f"a tensor with a device mesh that is no DTensor: {type(owner)}")
    whole = tensor.to(owner.device)
    return distribute_tensor(whole, mesh, owner.placements, src_data_rank=None)
