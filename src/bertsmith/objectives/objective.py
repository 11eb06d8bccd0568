"""Objective: one prediction task on masked text, a part of the loss."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor, nn

from bertsmith.corpus.plans import PairTask
from bertsmith.corpus.rows import RowsBatch
from bertsmith.models.build import Model
from bertsmith.nn.loss import LossSum
from bertsmith.objectives.batch import Score, Targets
from bertsmith.objectives.masking.masking import Masked


class Objective(Protocol):
    """One objective of the masked family; its settings are those of a recipe."""

    @property
    def name(self) -> str:
        """The name of its part of the loss."""

    @property
    def weight(self) -> float:
        """Its weight in the loss."""

    @property
    def head(self) -> str | None:
        """The published head it needs on the model; None when it brings its own."""

    @property
    def pair(self) -> PairTask | None:
        """The kind of sentence pairs it needs."""

    def own_head(self, model: Model) -> nn.Module | None:
        """A head that published models do not have, drawn from torch's global generator."""

    def targets(self, rows: RowsBatch, masked: Masked) -> Targets:
        """What to predict from which rows of the batch."""

    def loss(
        self, model: Model, own_head: nn.Module | None, hidden: Tensor, targets: Targets
    ) -> tuple[LossSum, Score]:
        """The loss and the accuracy of predictions from the rows that are read, (P, D)."""
