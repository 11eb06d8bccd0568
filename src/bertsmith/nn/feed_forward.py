"""The two linear layers of a block and the activations between them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertsmith.errors import unknown


def _gelu_tanh(x: Tensor) -> Tensor:
    return F.gelu(x, approximate="tanh")


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_tanh": _gelu_tanh,
    "relu": F.relu,
    "silu": F.silu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "identity": lambda x: x,
}
# The same, overwriting their input: the widest tensor of a block is then allocated once, not twice.
IN_PLACE: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": torch.ops.aten.gelu_,
    "gelu_tanh": partial(torch.ops.aten.gelu_, approximate="tanh"),
    "relu": torch.relu_,
    "silu": partial(F.silu, inplace=True),
    "tanh": torch.tanh_,
    "sigmoid": torch.sigmoid_,
    "identity": lambda x: x,
}


def find_activation(name: str) -> Callable[[Tensor], Tensor]:
    """The activation of that name."""
    if name not in ACTIVATIONS:
        raise unknown("activation", name, ACTIVATIONS)
    return ACTIVATIONS[name]


class FeedForward(nn.Module):
    """Linear, activation, linear: (T, D) -> (T, D)."""

    def __init__(self, hidden: int, width: int, *, activation: str = "gelu") -> None:
        super().__init__()
        self.up = nn.Linear(hidden, width)
        self.down = nn.Linear(width, hidden)
        self.activation = find_activation(activation)
        self.activation_in_place = IN_PLACE[activation]

    def forward(self, hidden: Tensor) -> Tensor:
        """(T, D) -> (T, D)."""
        wide = self.up(hidden)  # (T, F)
        active = self.activation if wide.requires_grad else self.activation_in_place
        return self.down(active(wide))  # type: ignore[no-any-return]
