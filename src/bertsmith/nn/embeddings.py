"""Embeddings: token, position and segment vectors summed, normed, projected if factorized."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from bertsmith.errors import TextError
from bertsmith.nn.dropout import dropout
from bertsmith.nn.inputs import SEGMENTS, Inputs
from bertsmith.nn.layout import Layout


class Embeddings(nn.Module):
    """Token vectors, learned position vectors (when `rows`) and those of `channels`, summed.

    `channels` names further embeddings and how many rows each has, "segments" among them. Decoders
    share the `tokens` of their encoder (`embedding_table` makes a table). `scale` multiplies token
    vectors, not those given in their place; without `norm_eps` there is no norm. `absent` names the
    row of a channel that a batch does not give, row 0 where it says nothing.
    """

    absent: Mapping[str, int]

    def __init__(
        self,
        tokens: nn.Embedding,
        *,
        rows: int = 0,
        first: int = 0,
        channels: Mapping[str, int] | None = None,
        project: int | None = None,
        norm_eps: float | None = 1e-12,
        scale: float | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.first = first
        self.dropout = dropout
        self.scale = scale
        self.tokens = tokens
        width = tokens.embedding_dim
        self.positions = embedding_table(rows, width) if rows else None
        further = dict(channels or {})
        segments = further.pop(SEGMENTS, 0)
        self.segments = embedding_table(segments, width) if segments else None
        self.norm = nn.LayerNorm(width, eps=norm_eps) if norm_eps is not None else None
        self.project = nn.Linear(width, project) if project else None
        self._channels = tuple(further)
        self.absent = {}
        for name, count in further.items():  # a ModuleDict refuses names such as "type"
            self.add_module(f"channel_{name}", embedding_table(count, width))

    @property
    def channels(self) -> dict[str, nn.Module]:
        """The further embeddings by name."""
        return {name: self.get_submodule(f"channel_{name}") for name in self._channels}

    def forward(self, inputs: Inputs) -> Tensor:
        """T rows of inputs -> (T, D)."""
        summed = self.token_vectors(inputs.ids)
        if inputs.vectors is not None and inputs.vector_rows is not None:
            summed = summed.index_copy(0, inputs.vector_rows, inputs.vectors.to(summed.dtype))
        segments = inputs.channels.get(SEGMENTS)
        if self.segments is not None:
            weight = self.segments.weight
            summed = summed + (weight[0] if segments is None else self.segments(segments))
        elif segments is not None and bool(torch.any(segments != 0)):
            raise TextError("this model has no segment embedding, but some segment is not 0")
        if self.positions is not None:
            summed = summed + self.positions(inputs.layout.positions + self.first)
        if self._channels or len(inputs.channels) > (segments is not None):
            summed = summed + self._further(inputs)
        rows: Tensor = summed if self.norm is None else self.norm(summed)
        if self.training:
            rows = dropout(rows, self.dropout)
        return rows if self.project is None else self.project(rows)

    def token_vectors(self, ids: Tensor) -> Tensor:
        """What the tokens add, which `Inputs.vectors` may replace: (T,) -> (T, E)."""
        vectors: Tensor = self.tokens(ids)
        return vectors if self.scale is None else vectors * self.scale

    def check_room(self, layout: Layout, past: int = 0) -> None:
        """Refuse texts whose positions, after `past` rows, are beyond those of the table."""
        if self.positions is None:
            return
        room, longest = self.positions.num_embeddings - self.first, layout.longest + past
        if longest <= room and (layout.positions.device.type != "cpu" or not layout.rows):
            return  # reading positions from another device would wait for it
        last = int(layout.positions.max())
        if last >= room:
            raise TextError(
                f"a text of {max(longest, last + 1)} tokens does not fit the {room} positions of "
                "this model; truncate it or read it in windows"
            )

    def _further(self, inputs: Inputs) -> Tensor:
        """The sum of the further channels, `absent` for those not given: -> (T or 1, E)."""
        given = {name: part for name, part in inputs.channels.items() if name != SEGMENTS}
        for name in given:
            if name not in self._channels:
                known = ", ".join(self._channels) or "none"
                raise TextError(f"this model has no embedding for {name} (its channels: {known})")
        total: Tensor = self.tokens.weight.new_zeros(1, self.tokens.embedding_dim)
        for name, table in self.channels.items():
            part = given.get(name)
            if part is None:
                total = total + table(inputs.ids.new_full((1,), self.absent.get(name, 0)))
            else:
                rows = table(part)
                total = total + (rows if part.dim() == 1 else rows.sum(1))
        return total


def embedding_table(rows: int, width: int) -> nn.Embedding:
    """An embedding left empty: drawing its values on "meta" would import torch's compiler."""
    return nn.Embedding(rows, width, _weight=torch.empty(rows, width))
