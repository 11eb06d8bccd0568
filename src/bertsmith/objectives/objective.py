"""Objective: one prediction task on masked text, a part of the loss."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field
from torch import Tensor, nn

from bertsmith.config import Settings
from bertsmith.corpus.plans import PairTask
from bertsmith.corpus.rows import RowsBatch
from bertsmith.models.build import Model
from bertsmith.nn.loss import LossSum, Score
from bertsmith.objectives.batch import Targets
from bertsmith.objectives.masking.masking import Masked


class Objective(Settings):
    """One objective of the masked family; its fields are the settings of a recipe."""

    weight: Annotated[float, Field(gt=0)] = 1.0  # in the loss
    name: ClassVar[str]  # of its part of the loss
    head: ClassVar[str | None] = None  # the published head it needs; None: `own_head`
    pair: ClassVar[PairTask | None] = None  # the kind of sentence pairs it needs

    def own_head(self, model: Model) -> nn.Module | None:
        """A head that published models do not have, drawn from torch's global generator."""
        return None

    def targets(self, rows: RowsBatch, masked: Masked) -> Targets:
        """What to predict from which rows of the batch."""
        raise TypeError(f"the objective {self.name} has no targets")

    def loss(
        self, model: Model, own_head: nn.Module | None, hidden: Tensor, targets: Targets
    ) -> tuple[LossSum, Score]:
        """The loss and the accuracy of predictions from the rows that are read, (P, D)."""
        raise TypeError(f"the objective {self.name} has no loss")
