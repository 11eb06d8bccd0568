"""Soft-Masked BERT (Zhang et al. 2020, arXiv:2005.07421): a detector mixes embeddings with [MASK].

The mixture is of token embeddings before position and norm, which both have in common; with a
detector that finds nothing and without the residual, this is the masked LM itself.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from bertsmith.models.build import Model, initialize
from bertsmith.nn.layout import Layout
from bertsmith.nn.recurrent import BiGru
from bertsmith.tasks.spelling.features import CorrectionBatch
from bertsmith.tasks.spelling.settings import DetectorSettings


class Detector(nn.Module):
    """How likely each token is wrong, from the embeddings of its text."""

    def __init__(self, inputs: int, settings: DetectorSettings) -> None:
        super().__init__()
        self.rows = BiGru(inputs, settings.width, layers=settings.layers)
        self.score = nn.Linear(self.rows.width, 1)

    def forward(self, embedded: Tensor, layout: Layout) -> Tensor:
        """(T, D) -> logits (T,)."""
        return self.score(self.rows(embedded, layout))[:, 0]  # type: ignore[no-any-return]


class SoftMasked(nn.Module):
    """A masked LM behind a detector; without one, the masked LM alone."""

    def __init__(
        self, model: Model, settings: DetectorSettings, mask_id: int, *, seed: int = 0
    ) -> None:
        super().__init__()
        self.model = model
        self.settings = settings
        self.mask_id = mask_id
        self.detector: Detector | None = None
        if settings.kind == "gru":
            self.detector = Detector(model.spec.hidden, settings)
            initialize(self.detector, torch.Generator().manual_seed(seed))

    def forward(self, batch: CorrectionBatch) -> tuple[Tensor, Tensor | None]:
        """What the head reads of the U characters (U, D), and how likely each is wrong (U,)."""
        inputs = batch.inputs
        if self.detector is None:
            return self.model(inputs, rows=batch.at).hidden, None
        embeddings = self.model.encoder.embeddings
        embedded = embeddings(inputs)  # (T, D)
        wrong = self.detector(embedded, inputs.layout)
        share = torch.sigmoid(wrong.index_select(0, batch.inside))[:, None]  # (I, 1)
        tokens = embeddings.tokens(inputs.ids.index_select(0, batch.inside))  # (I, E)
        mask = embeddings.tokens.weight[self.mask_id]
        mixed = share * mask + (1 - share) * tokens
        if embeddings.scale is not None:
            mixed = mixed * embeddings.scale
        soft = replace(inputs, vectors=mixed, vector_rows=batch.inside)
        hidden: Tensor = self.model(soft, rows=batch.at).hidden  # (U, D)
        if self.settings.residual:
            hidden = hidden + embedded.index_select(0, batch.at)
        return hidden, wrong.index_select(0, batch.at)

    def logits(self, hidden: Tensor) -> Tensor:
        """Of the vocabulary, from what `forward` gives: (U, D) -> (U, V)."""
        return self.model.logits("masked_lm", hidden)
