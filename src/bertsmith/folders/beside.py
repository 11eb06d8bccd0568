"""What stands in a folder beside a model: facts in bertsmith.json, and tensors that no published
model has, which `model.safetensors` must not hold, since other libraries would complain about them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """`told` goes into bertsmith.json; `tensors` are the contents of further files, by file."""

    told: Mapping[str, Any] = field(default_factory=dict)
    tensors: Mapping[str, Mapping[str, Tensor]] = field(default_factory=dict)

    def __or__(self, other: Beside) -> Beside:
        return Beside(told={**self.told, **other.told}, tensors={**self.tensors, **other.tensors})


NOTHING = Beside()
