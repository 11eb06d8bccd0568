"""What an objective is: it asks something of a masked batch and scores the answer."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor, nn

from bertsmith.corpus.plans.pairs import PairTask
from bertsmith.corpus.rows import RowsBatch
from bertsmith.models.build import Model
from bertsmith.nn.loss import LossSum
from bertsmith.objectives.batch import Asked, Score
from bertsmith.objectives.masking.masking import Masked


class Objective(Protocol):
    """One question of pre-training; `name` is that of its part of the loss."""

    @property
    def name(self) -> str:
        """The name of its part of the loss."""

    @property
    def weight(self) -> float:
        """Its weight beside others, unless a recipe says otherwise."""

    @property
    def head(self) -> str | None:
        """The head it needs on the model; None when it brings its own."""

    @property
    def pair(self) -> PairTask | None:
        """The kind of pairs it needs in its inputs."""

    def own_head(self, model: Model, random: torch.Generator | None) -> nn.Module | None:
        """A head that published models do not have, for the time of training."""

    def ask(self, rows: RowsBatch, masked: Masked) -> Asked:
        """What to predict from which rows of the batch."""

    def loss(
        self, model: Model, own_head: nn.Module | None, hidden: Tensor, asked: Asked
    ) -> tuple[LossSum, Score]:
        """The loss and the score of predictions from hidden rows (P, D)."""
