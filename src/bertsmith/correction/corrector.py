"""Corrector: texts in, edits with offsets and scores out; nothing but characters for characters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from bertsmith.errors import ConfigError, check_type
from bertsmith.metrics.arrays import Floats
from bertsmith.metrics.correction import CORRECTIONS, Places
from bertsmith.nn.packing import pack
from bertsmith.runtime.host import not_finite
from bertsmith.tasks.spelling.features import CharacterTokens, CorrectionBatch
from bertsmith.tasks.spelling.model import SoftMasked
from bertsmith.tasks.spelling.settings import ThresholdSettings

BUDGET = 2_048  # tokens of a batch
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


class Corrector:
    """A trained corrector; changes from `threshold` on are made."""

    def __init__(
        self,
        module: SoftMasked,
        tokens: CharacterTokens,
        *,
        threshold: float = 0.0,
        device: torch.device | str = "cpu",
    ) -> None:
        check_threshold(threshold)
        self.module = module.to(device).eval()
        self.tokens = tokens
        self.threshold = threshold
        self.device = torch.device(device)
        ids = list(tokens.characters)
        self._ids = torch.tensor(ids, device=self.device)
        self._names = [tokens.characters[number] for number in ids]

    def correct(
        self, texts: Iterable[str], *, threshold: float | None = None
    ) -> list[CorrectedText]:
        """Each text with its edits."""
        every = list(texts)
        for text in every:
            check_type("text", text, str)
        least = self.threshold if threshold is None else check_threshold(threshold)
        return [
            CorrectedText.of(text, [edit for edit in edits if edit.score >= least])
            for text, edits in zip(every, self.proposals(every), strict=True)
        ]

    def proposals(self, texts: Sequence[str]) -> list[list[Edit]]:
        """Every place where another character is likelier than the one that stands there."""
        found: list[list[Edit]] = [[] for _ in texts]
        features = self.tokens.features(texts)
        for part in pack([len(one.ids) for one in features], BUDGET) if features else []:
            batch = CorrectionBatch.of([features[number] for number in part])
            best, scores = self._best(batch.to(self.device))
            for text, place, name, score in zip(
                batch.texts.tolist(), batch.places.tolist(), best, scores.tolist(), strict=True
            ):
                wrong = texts[text][place]
                if wrong != name:
                    found[text].append(
                        Edit(start=place, end=place + 1, wrong=wrong, right=name, score=score)
                    )
        return [sorted(edits, key=lambda edit: edit.start) for edits in found]

    def _best(self, batch: CorrectionBatch) -> tuple[list[str], Floats]:
        """The likeliest character of each place (U,), and its probability among all tokens."""
        with torch.inference_mode():
            hidden, _ = self.module(batch)
            chances = self.module.logits(hidden).float().softmax(-1)
            best = chances.index_select(1, self._ids).max(dim=1)
        if not best.values.isfinite().all():
            raise not_finite("a text")
        names = [self._names[number] for number in best.indices.tolist()]
        return names, best.values.double().cpu().numpy()


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
