"""How rows become features: tokenizer, lengths, further columns, enrichment; as in training."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bertsmith.labeled.example import Example
from bertsmith.tasks.enrichment.enrichment import Enrichment
from bertsmith.tasks.feature import Feature
from bertsmith.tasks.length import LengthSettings
from bertsmith.tasks.model.columns import MetaTables, with_meta
from bertsmith.tasks.task import Task
from bertsmith.text.encoding import FieldEncoder

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TaskReading:
    """Makes the features of a task, the same in training and in prediction."""

    tokenizer: FieldEncoder
    lengths: LengthSettings
    tables: MetaTables = field(default_factory=dict)
    enrichment: Enrichment | None = None

    def features(self, task: Task, examples: Sequence[Example]) -> list[Feature]:
        """The passages of rows with all that the model reads of them."""
        return self.counted(task, examples)[0]

    def counted(
        self, task: Task, examples: Sequence[Example]
    ) -> tuple[list[Feature], dict[str, Any]]:
        """The same, and what the enrichment gave them, {} without one."""
        features = task.features(examples, self.tokenizer, self.lengths)
        features = with_meta(features, examples, self.tables)
        if self.enrichment is None:
            return features, {}
        features, counts = self.enrichment.joined(
            features, examples, self.tokenizer, self.lengths.max_length
        )
        if counts.get("tags_never_seen"):
            log.warning(
                "%d words have a tag that no training row has (%s): they are read as unknown",
                counts["tags_never_seen"],
                ", ".join(counts["never_seen"]),
            )
        return features, counts
