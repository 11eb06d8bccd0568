"""Edits of a text, one character for another, and the threshold from which they are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bertsmith.errors import ConfigError
from bertsmith.metrics.correction import CORRECTIONS, Places
from bertsmith.tasks.spelling.settings import ThresholdSettings

CANDIDATES = 200  # thresholds that are tried


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One character for another: where it stands in the text, and how sure the model is."""

    start: int
    end: int
    wrong: str
    right: str
    score: float

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "start": self.start,
            "end": self.end,
            "wrong": self.wrong,
            "right": self.right,
            "score": self.score,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedText:
    """A text as given, as corrected, and the edits between both, from left to right."""

    text: str
    corrected: str
    edits: tuple[Edit, ...] = field(default_factory=tuple)

    @classmethod
    def of(cls, text: str, edits: Sequence[Edit]) -> CorrectedText:
        """The edits applied."""
        characters = list(text)
        for edit in edits:
            characters[edit.start] = edit.right
        return cls(text=text, corrected="".join(characters), edits=tuple(edits))

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "text": self.text,
            "corrected": self.corrected,
            "edits": [edit.to_json() for edit in self.edits],
        }


def check_threshold(value: float) -> float:
    """Refuse what is no probability."""
    if not 0.0 <= value <= 1.0:
        raise ConfigError(f"the threshold is {value}; it must be from 0 to 1")
    return value


def places_of(edits: Sequence[Edit], threshold: float) -> dict[int, str]:
    """The changes of a text from a threshold on, as the metric takes them."""
    return {edit.start: edit.right for edit in edits if edit.score >= threshold}


def tuned_threshold(
    truth: Sequence[Places], proposals: Sequence[Sequence[Edit]], settings: ThresholdSettings
) -> float:
    """The threshold with the best F1, or the lowest with few enough false alarms.

    Of equal F1 the fewest false alarms count, so that a model that is never right changes nothing.
    """
    scores = np.array(sorted({edit.score for edits in proposals for edit in edits}))
    if not len(scores):
        return 0.5
    tried = np.unique(np.quantile(scores, np.linspace(0, 1, CANDIDATES), method="lower"))
    figures: dict[float, dict[str, float]] = {}
    for value in [*map(float, tried), 1.0]:
        said = [places_of(edits, value) for edits in proposals]
        figures[value] = CORRECTIONS.score(truth, said)
    if settings.goal == "f1":
        return max(
            figures,
            key=lambda v: (figures[v]["correction_f1"], -figures[v]["false_alarm_rate"], -v),
        )
    fine = [v for v in figures if figures[v]["false_alarm_rate"] <= settings.false_alarms]
    return min(fine, default=1.0)
