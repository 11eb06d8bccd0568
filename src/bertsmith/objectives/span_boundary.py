"""Span boundary objective (SpanBERT, Joshi et al. 2019, arXiv:1907.10529)."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from bertsmith.corpus.rows import RowsBatch
from bertsmith.errors import ConfigError
from bertsmith.models.build import Model, initialize
from bertsmith.nn.feed_forward import find_activation
from bertsmith.nn.loss import LossSum, Score
from bertsmith.nn.vocabulary_loss import vocabulary_loss
from bertsmith.objectives.batch import Targets
from bertsmith.objectives.masking.masking import Masked
from bertsmith.objectives.objective import Objective

POSITION_WIDTH = 200


class SpanBoundaryHead(nn.Module):
    """Two dense layers over both boundary rows and the place in the span."""

    def __init__(self, hidden: int, embedding: int, vocab_size: int, *, places: int) -> None:
        super().__init__()
        self.places = nn.Embedding(places, POSITION_WIDTH)
        self.first = nn.Linear(2 * hidden + POSITION_WIDTH, hidden)
        self.first_norm = nn.LayerNorm(hidden)
        self.second = nn.Linear(hidden, embedding)
        self.second_norm = nn.LayerNorm(embedding)
        self.bias = nn.Parameter(torch.zeros(vocab_size))
        self.activation = find_activation("gelu")

    def forward(self, left: Tensor, right: Tensor, places: Tensor) -> Tensor:
        """(P, D), (P, D), (P,) -> (P, E), to be multiplied with the token embedding."""
        joined = torch.cat([left, right, self.places(places)], dim=-1)
        rows = self.first_norm(self.activation(self.first(joined)))
        return self.second_norm(self.activation(self.second(rows)))  # type: ignore[no-any-return]


class SpanBoundary(Objective):
    """Predict each token of a hidden span from the visible tokens at its two ends.

    Units that touch are one span, so that a boundary is never hidden itself. Tokens beyond the
    first `places` of a span are not predicted.
    """

    places: Annotated[int, Field(ge=1)] = 20
    name: ClassVar[str] = "sbo"

    def own_head(self, model: Model) -> nn.Module | None:
        """The head, drawn as published models are."""
        spec = model.spec
        head = SpanBoundaryHead(spec.hidden, spec.embedding, spec.vocab_size, places=self.places)
        initialize(head)
        return head

    def targets(self, rows: RowsBatch, masked: Masked) -> Targets:
        """Each hidden token with the rows before and after its span."""
        hidden = masked.hidden
        edge = np.zeros(len(hidden) + 2, dtype=np.int8)
        edge[1:-1] = hidden
        starts = rows.starts[rows.sizes > 0]
        change = np.diff(edge)
        opens, closes = change[:-1] > 0, change[1:] < 0
        opens[starts] |= hidden[starts]  # a span ends with its text
        closes[starts[1:] - 1] |= hidden[starts[1:] - 1]
        first, last = np.flatnonzero(opens), np.flatnonzero(closes)
        text = rows.texts[first]
        bounded = (first > rows.starts[text]) & (last + 1 < rows.starts[text] + rows.sizes[text])
        at = np.flatnonzero(hidden)
        span = (np.cumsum(opens) - 1)[at]
        place = at - first[span]
        used = bounded[span] & (place < self.places)
        at, span, place = at[used], span[used], place[used]
        return Targets(
            at=torch.from_numpy(np.stack([first[span] - 1, last[span] + 1], axis=1)),
            of=torch.from_numpy(rows.ids[at].astype(np.int64)),
            more={"place": torch.from_numpy(place)},
        )

    def loss(
        self, model: Model, own_head: nn.Module | None, hidden: Tensor, targets: Targets
    ) -> tuple[LossSum, Score]:
        """(rows, D) -> the loss over the vocabulary."""
        if not isinstance(own_head, SpanBoundaryHead):
            raise ConfigError("the model was built without the head of sbo")
        left, right = hidden[targets.at[:, 0]], hidden[targets.at[:, 1]]
        loss, correct = vocabulary_loss(
            own_head(left, right, targets.more["place"]),
            model.encoder.embeddings.tokens.weight,
            own_head.bias,
            targets.of,
        )
        return loss, Score(correct, targets.count)
