"""Labeled rows as training reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bertsmith.labeled.example import Example
from bertsmith.labeled.spec import DataSpec
from bertsmith.labeled.split.splits import Splits


@dataclass(frozen=True, slots=True, kw_only=True)
class LabeledRows:
    """Rows to learn from, to choose the best weights by, and to test on.

    `known` are rows whose labels the model is to have, too, though it does not learn from them.
    `language` of the texts, if it is known. `spec` is how the training file was read, and is saved
    with the model. `findings` are sections of the record: survey, lengths.
    """

    train: Sequence[Example]
    dev: Sequence[Example]
    test: Sequence[Example] = ()
    known: Sequence[Example] = ()
    language: str | None = None
    spec: DataSpec | None = None
    rejected: Mapping[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()
    findings: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of_splits(cls, splits: Splits, *, language: str | None = None) -> LabeledRows:
        """All rows of a file or a folder."""
        accounts = splits.accounts.items()
        return cls(
            train=splits.train,
            dev=splits.dev,
            test=splits.test,
            language=language,
            spec=splits.specs["train"],
            rejected={name: one.rows_rejected for name, one in accounts if one.rows_rejected},
            notes=tuple(splits.notes),
        )

    @property
    def sides(self) -> dict[str, Sequence[Example]]:
        """The three sets by name."""
        return {"train": self.train, "dev": self.dev, "test": self.test}
