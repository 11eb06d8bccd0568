"""Where a run stands besides its tensors: small numbers, exact in JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from bertsmith.errors import FolderError
from bertsmith.random_keys import key_of


@dataclass(slots=True)
class TrainState:
    """Steps done, tokens seen, seconds used, and the log line and average under way."""

    step: int = 0
    tokens: int = 0
    clock: float = 0.0
    share: float = 0.0  # of training; never falls
    reserve: float = 0.0  # seconds reserved for the last evaluation, by the clock
    averaged: int = 0  # weights in the running mean
    best: dict[str, Any] = field(
        default_factory=dict
    )  # the best evaluation so far, if there is one
    window: dict[str, float] = field(default_factory=dict)  # sums of the unfinished log line
    changes: list[dict[str, Any]] = field(default_factory=list)  # of settings, at every resume
    stages: list[dict[str, Any]] = field(default_factory=list)  # the evaluation at each one's end

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any], *, where: str) -> TrainState:
        """The state that `to_json` gave."""
        names = {entry.name for entry in fields(cls)}
        if {*values, "stages"} != names:  # states of older versions have no stages
            odd = sorted({*values, "stages"} ^ names)
            raise FolderError(f"{where}: not the state of a run of this version: {', '.join(odd)}")
        return cls(**values)


def step_seed(seed: int, step: int, rank: int) -> int:
    """The seed of torch's generator for one step of one rank.

    Drawn anew for each step (splitmix64), so that no generator state can be lost or restored too
    late, with any number of ranks.
    """
    return key_of(step, rank, seed=seed) >> 1
