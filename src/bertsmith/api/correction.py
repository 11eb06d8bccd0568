"""Correction of texts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from bertsmith.runtime.corrector import Corrector
from bertsmith.tasks.spelling.edits import CorrectedText


def correct(
    model: str | Path | Corrector,
    texts: Iterable[str],
    *,
    threshold: float | None = None,
    device: str = "cpu",
) -> list[CorrectedText]:
    """Each text with the edits of a corrector that `finetune --task correct` has trained.

    A folder is loaded at every call; a `Corrector` stays in memory.
    """
    corrector = model if isinstance(model, Corrector) else Corrector.load(model, device=device)
    return corrector.correct(texts, threshold=threshold)
