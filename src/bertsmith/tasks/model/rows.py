"""What a head of settings reads of an encoder: a mix of layers, an LSTM, words with their tags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from bertsmith.errors import ConfigError
from bertsmith.nn.pooling import LayerMix
from bertsmith.nn.recurrent import BiLstm
from bertsmith.tasks.batch import TaskBatch
from bertsmith.tasks.enrichment.tag_channel import CHANNEL, TagChannel, draw_channel, words_of_rows
from bertsmith.tasks.model.layers import HeadSettings, draw_weights
from bertsmith.tasks.model.text_vector import VectorSettings


@dataclass(frozen=True, slots=True)
class LayerRows:
    """Layers (T, W) of the passages of a batch, of these `lengths`.

    `place` (T,) is the row of each token, where rows are words; None: rows are tokens.
    """

    layers: Sequence[Tensor]
    lengths: Sequence[int]
    place: Tensor | None = None

    def at(self, tokens: Tensor) -> Tensor:
        """The last layer at some tokens: (U,) -> (U, W)."""
        return self.layers[-1].index_select(0, tokens if self.place is None else self.place[tokens])


class RowReading(nn.Module):
    """Layers of an encoder -> the rows that a head reads, tokens or words: (T, D) -> (T, W)."""

    def __init__(
        self,
        vector: VectorSettings,
        head: HeadSettings,
        *,
        hidden: int,
        layers: int,
        random: torch.Generator | None,
    ) -> None:
        """`layers` is the number of blocks N; there are N + 1 layers to read."""
        super().__init__()
        self.settings = vector
        self.mix = LayerMix(layers + 1, hidden) if vector.layers == "mix" else None
        self.lstm: BiLstm | None = None
        self.channel: TagChannel | None = None
        self.width = hidden
        if head.lstm is not None:
            self.lstm = _lstm(head.lstm, vector, hidden, random)
            self.width = self.lstm.width
        if vector.channel is not None:
            if vector.combines_layers or vector.pooling in ("first", "last") or head.lstm:
                raise ConfigError(
                    "a channel is joined to the words of the last layer: leave vector.layers and "
                    "head.lstm out, and set vector.pooling to max, mean or attention"
                )
            self.channel = TagChannel(vector.channel, self.width)
            draw_channel(self.channel, random)
            self.width = self.channel.width

    @property
    def learns(self) -> bool:
        """Whether it has weights at all."""
        return any(part is not None for part in (self.mix, self.lstm, self.channel))

    @property
    def channels(self) -> tuple[str, ...]:
        """The tags of words, which the encoder has no embedding for."""
        return () if self.channel is None else (CHANNEL,)

    def forward(self, layers: Sequence[Tensor], batch: TaskBatch) -> LayerRows:
        """The last layer (T, D), or all that are read -> rows."""
        lengths = batch.layout.lengths
        if self.mix is not None:
            layers = (self.mix(torch.stack(list(layers))),)
        if self.lstm is not None:
            layers = (self.lstm(layers[-1], lengths),)
        if self.channel is None:
            return LayerRows(layers, lengths)
        if CHANNEL not in batch.inputs.channels:
            raise ConfigError("the model reads tags of words, and the batch has none")
        tags = batch.inputs.channels[CHANNEL]  # (T, 1 + S)
        words, counts = self.channel(layers[-1], tags, lengths)
        return LayerRows((words,), counts, words_of_rows(tags[:, 0], lengths)[0])


def _lstm(
    width: int, vector: VectorSettings, hidden: int, random: torch.Generator | None
) -> BiLstm:
    """The LSTM between encoder and head; it reads the last layer."""
    if vector.combines_layers:
        raise ConfigError(
            f"head.lstm reads the last layer, or a mix of all, not vector.layers = "
            f"{vector.layers}; leave one out"
        )
    lstm = BiLstm(hidden, width)
    draw_weights(lstm, random)
    return lstm
