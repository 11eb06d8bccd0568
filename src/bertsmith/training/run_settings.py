"""What does not belong to the method of a run: seed, number format, cores, processes."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from bertsmith.training.precision import Wanted
from bertsmith.training.ranks import RankSettings

Count = Annotated[int, Field(ge=1)]


class RunSettings(RankSettings):
    """The section `run` of every recipe."""

    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    precision: Wanted = "auto"
    threads: Count | None = None
    devices: Count = 1
