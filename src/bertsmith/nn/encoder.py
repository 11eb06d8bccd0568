"""The encoder: ids of many texts in, one hidden row a token out, nothing padded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from bertsmith.errors import TextError
from bertsmith.nn.attention_plan import regroup
from bertsmith.nn.block import Block
from bertsmith.nn.embeddings import Embeddings
from bertsmith.nn.inputs import Inputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """What to keep besides the last hidden rows."""

    layers: bool = False
    attention: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """What an encoder gives back."""

    hidden: Tensor  # (T, D), or (P, D) when only some rows were asked for
    layers: tuple[Tensor, ...] | None = None  # N + 1 of (T, D): the embeddings and every block
    attention: tuple[Tensor, ...] | None = None  # N of (B, H, M, M), zero outside of a text


class Encoder(nn.Module):
    """Embeddings, blocks and, for some models, a pooler over the first token of a text."""

    def __init__(
        self,
        embeddings: Embeddings,
        blocks: Sequence[Block],
        *,
        pooler: nn.Linear | None = None,
        clip: int | None = None,
    ) -> None:
        """With `clip`, attention uses functional relative positions up to that distance."""
        super().__init__()
        self.embeddings = embeddings
        self.blocks = nn.ModuleList(blocks)
        self.pooler = pooler
        self.clip = clip
        self.heads = blocks[0].attention.heads

    def forward(
        self,
        inputs: Inputs,
        *,
        rows: Tensor | None = None,
        want: Want = Want(),  # noqa: B008 - frozen
        head_mask: Tensor | None = None,
    ) -> Encoded:
        """Encode T rows; `rows` (P,) reads only those rows, `head_mask` (N, H) scales heads."""
        self._check(inputs, head_mask)
        layout = inputs.layout
        hidden = self.embeddings(inputs)
        width = hidden.shape[-1] // self.heads
        plan = regroup(layout, clip=self.clip, head_width=width, dtype=hidden.dtype)
        last_plan = plan
        if rows is not None and not (want.layers or want.attention):
            last_plan = regroup(
                layout, rows=rows, clip=self.clip, head_width=width, dtype=hidden.dtype
            )
        layers, squares = [hidden], []
        for number, block in enumerate(self.blocks):
            hidden, square = block(
                hidden,
                last_plan if number == len(self.blocks) - 1 else plan,
                head_mask=None if head_mask is None else head_mask[number],
                probabilities=want.attention,
            )
            if want.layers:
                layers.append(hidden)
            if square is not None:
                squares.append(square)
        if last_plan.restore is not None:
            hidden = hidden.index_select(0, last_plan.restore)
        elif rows is not None:
            hidden = hidden.index_select(0, rows)
        return Encoded(
            hidden=hidden,
            layers=tuple(layers) if want.layers else None,
            attention=tuple(squares) if want.attention else None,
        )

    def pool(self, first: Tensor) -> Tensor:
        """The pooled output of first-token rows: (B, D) -> (B, D)."""
        if self.pooler is None:
            raise TextError("this model has no pooler; pool its rows instead")
        return torch.tanh(self.pooler(first))

    def _check(self, inputs: Inputs, head_mask: Tensor | None) -> None:
        """Refuse by name what torch would refuse in numbers, or not at all."""
        inputs.check()
        if head_mask is not None:
            heads = (len(self.blocks), self.heads)
            if tuple(head_mask.shape) != heads:
                raise TextError(f"head_mask must be {heads}, not {tuple(head_mask.shape)}")
        layout = inputs.layout
        longest = layout.longest
        table = self.embeddings.positions
        if table is None:
            return
        room = table.num_embeddings - self.embeddings.first
        if longest > room and int(layout.positions.max()) >= room:
            raise TextError(
                f"a text of {longest} tokens does not fit the {room} positions of this model; "
                "truncate it or read it in windows"
            )
