"""How a training ended that leaves a model folder with a record of its figures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertsmith.training.loop.run import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedModel:
    """The folder and how training ended; `record` is None when it was stopped."""

    folder: Path
    outcome: Outcome
    record: dict[str, Any] | None = None
    is_first: bool = True  # False in further processes of one run, which write nothing

    @property
    def metrics(self) -> dict[str, float]:
        """Metrics of the test rows, or of the dev rows where there is no test set."""
        record = self.record or {}
        part = record.get("test") or record.get("dev") or {}
        return dict(part.get("figures", {}))
