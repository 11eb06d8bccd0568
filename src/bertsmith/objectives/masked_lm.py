"""Masked language model: predict the masked tokens (Devlin et al. 2018, arXiv:1810.04805)."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from bertsmith.config import Settings
from bertsmith.corpus.rows import RowsBatch
from bertsmith.models.build import Model
from bertsmith.nn.loss import LossSum
from bertsmith.objectives.batch import Score, Targets
from bertsmith.objectives.masking.masking import Masked
from bertsmith.objectives.vocabulary import masked_lm_head, masked_lm_rows, token_loss


class MaskedLMObjective(Settings):
    """Predict every masked token from its own row."""

    weight: Annotated[float, Field(gt=0)] = 1.0
    name: ClassVar[str] = "mlm"
    head: ClassVar[str] = "masked_lm"
    pair: ClassVar[None] = None

    def own_head(self, model: Model) -> nn.Module | None:
        """None: published models have this head."""
        return None

    def targets(self, rows: RowsBatch, masked: Masked) -> Targets:
        """Every masked row; its target is the token that stood there.

        `uniform` is a random number for each, should somebody want to sample a prediction.
        """
        at = np.flatnonzero(masked.hidden)
        return Targets(
            at=torch.from_numpy(at),
            of=torch.from_numpy(rows.ids[at].astype(np.int64)),
            more={"uniform": torch.from_numpy(rows.uniforms("sample", at))},
        )

    def loss(
        self, model: Model, own_head: nn.Module | None, hidden: Tensor, targets: Targets
    ) -> tuple[LossSum, Score]:
        """(rows, D) -> the loss over the vocabulary."""
        return token_loss(
            masked_lm_rows(model, hidden[targets.at]),
            model.encoder.embeddings.tokens.weight,
            masked_lm_head(model).bias,
            targets.of,
        )
