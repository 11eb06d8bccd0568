"""Settings of spelling correction that decide what a model is and where it changes a text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from bertsmith.config import Count, Settings
from bertsmith.setting import MODEL, Setting, check_settings


class DetectorSettings(Settings):
    """What says how likely each character is wrong."""

    kind: Literal["gru", "none"] = "gru"
    width: Count = 256  # of each direction
    layers: Count = 1
    weight: Annotated[float, Field(ge=0, lt=1)] = 0.2  # of its loss; the correction has the rest
    residual: bool = True  # embeddings are added to the rows that the head reads


class ThresholdSettings(Settings):
    """What the score from which a character is changed is tuned for, on the dev rows."""

    goal: Literal["f1", "false_alarms"] = "f1"
    false_alarms: Annotated[float, Field(ge=0, le=1)] = 0.05  # share of clean texts changed


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectionOptions:
    """Which changes a corrector makes."""

    threshold: Annotated[
        float | None,
        Setting(
            "Least probability of a change; as tuned in training if unset.", MODEL, min=0.0, max=1.0
        ),
    ] = None

    def __post_init__(self) -> None:
        check_settings(self)
