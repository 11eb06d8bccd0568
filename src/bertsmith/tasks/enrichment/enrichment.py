"""Enrichment: what a model reads of a row besides its texts: branches of a graph, tags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from bertsmith.errors import ConfigError
from bertsmith.labeled.example import Example
from bertsmith.tasks.enrichment.tag_channel import ChannelShape
from bertsmith.tasks.feature import Feature
from bertsmith.tasks.task import Task
from bertsmith.text.encoding import FieldEncoder


class Enrichment(Protocol):
    """Joins more to the passages of rows, the same in training and in prediction."""

    @property
    def key(self) -> str:
        """Its section in recipes and in bertsmith.json."""

    @property
    def shape(self) -> ChannelShape | None:
        """The layers that a model needs for it; None: none."""

    @property
    def source(self) -> str:
        """What is read, behind the name of an engine: " with the graph 1f2e3d"; "": the rows."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that rows must have."""

    def joined(
        self,
        features: Sequence[Feature],
        examples: Sequence[Example],
        tokenizer: FieldEncoder,
        max_length: int,
    ) -> tuple[list[Feature], dict[str, Any]]:
        """The features with what is joined to them, and counts of it as JSON values."""

    def to_json(self) -> dict[str, Any]:
        """What bertsmith.json holds of it."""

    def files(self) -> Mapping[str, Any]:
        """Further JSON files of a model folder, by name."""


def check_enriched(task: Task, what: str) -> None:
    """Refuse a task whose passages cannot hold more than their texts."""
    if not task.kind.enriched or task.bi_encoder:
        name = "a bi-encoder" if task.bi_encoder else f"the task {task.name}"
        raise ConfigError(
            f"{what} is for tasks that read the texts of a row as one passage (classify, "
            f"multilabel, regress, tag), not for {name}; leave it out"
        )
