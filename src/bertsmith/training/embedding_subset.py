"""Trains only the embedding rows that occur in the data.

The gradient of a table is as large as the table, and an optimizer reads and writes three times as
much: with short texts that was a third of a step. Rows that no text has get no gradient; only the
decay of weights would change them, which they are spared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertsmith.models.build import Model
from bertsmith.text.encoding import Ints


class EmbeddingSubset(nn.Embedding):
    """The rows `seen` of an embedding table, addressed by the ids of the whole one."""

    places: Tensor  # (V,) the row of each token, -1: not here

    def __init__(self, whole: nn.Embedding, seen: Sequence[int]) -> None:
        table = whole.weight.detach()
        rows = torch.tensor(sorted(set(seen)), dtype=torch.long, device=table.device)
        super().__init__(len(rows), whole.embedding_dim, _weight=table[rows].clone())
        self.weight.requires_grad_(whole.weight.requires_grad)
        places = torch.full((whole.num_embeddings,), -1, dtype=torch.long, device=table.device)
        places[rows] = torch.arange(len(rows), device=table.device)
        self.register_buffer("places", places, persistent=False)
        self._whole = [whole]  # in a list: its rows are no parameters of this module

    def forward(self, input: Tensor) -> Tensor:
        """(T,) -> (T, E)."""
        return F.embedding(self.places[input], self.weight)

    @torch.no_grad()
    def put_back(self) -> nn.Embedding:
        """The whole table with the rows as they are now."""
        (whole,) = self._whole
        whole = whole.to(self.weight.device)
        whole.weight[(self.places >= 0).nonzero()[:, 0]] = self.weight
        return whole


def use_embedding_subset(model: Model, texts: Iterable[Ints], also: Sequence[int] = ()) -> None:
    """Leave the rows of other tokens out of a model that is about to be trained on `texts` of ids.

    `also` are tokens that training will put into them. A head over the vocabulary needs all rows.
    """
    table = model.encoder.embeddings.tokens
    if not table.weight.requires_grad or any(map(model.reads_tokens, model.heads)):
        return
    seen = np.zeros(table.num_embeddings, dtype=bool)
    seen[list(also)] = True
    if model.spec.decoder is not None:
        seen[model.spec.decoder.start] = True
    for ids in texts:
        seen[ids] = True
    if not seen.all():
        _replace(model, EmbeddingSubset(table, np.flatnonzero(seen).tolist()))


def restore_embeddings(model: Model) -> None:
    """Undo `use_embedding_subset`, with what was learned."""
    table = model.encoder.embeddings.tokens
    if isinstance(table, EmbeddingSubset):
        _replace(model, table.put_back())


def _replace(model: Model, table: nn.Embedding) -> None:
    """Another token table, which a decoder shares."""
    model.encoder.embeddings.tokens = table
    if model.decoder is not None:
        model.decoder.embeddings.tokens = table
