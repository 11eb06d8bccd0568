"""Encoders of whole words as task models read them: ELMo's network, and a table of vectors."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertsmith.errors import TextError
from bertsmith.models.text_model import TextModel
from bertsmith.models.word_encoders.elmo_network import ElmoNetwork
from bertsmith.nn.encoder import Encoded, Want
from bertsmith.nn.inputs import CHARACTERS, Inputs
from bertsmith.text.whole_words.characters import mark_rows

BEGIN_ROW, END_ROW = 0, 1  # of a pass; its words follow


@dataclass(frozen=True, slots=True, kw_only=True)
class WordShape:
    """The sizes of an encoder of words; `layers` above the vectors of the words themselves."""

    hidden: int
    layers: int
    vocab_size: int


class ElmoEncoder(nn.Module):
    """Characters of words -> layers, each text between its own ends, with states of its own."""

    marks: Tensor  # (2, length) the begin and the end of a text

    def __init__(self, network: ElmoNetwork) -> None:
        super().__init__()
        self.network = network
        marks = torch.from_numpy(mark_rows(network.spec.length))
        self.register_buffer("marks", marks, persistent=False)

    def forward(self, inputs: Inputs) -> list[Tensor]:
        """T rows of inputs -> layers + 1 of (T, D)."""
        if CHARACTERS not in inputs.channels:
            raise TextError("ELMo reads the characters of words, and the batch has none")
        spelled, number = torch.unique(inputs.channels[CHARACTERS], dim=0, return_inverse=True)
        lengths = inputs.layout.lengths
        order = sorted(range(len(lengths)), key=lambda text: -lengths[text])
        column = torch.empty(len(lengths), dtype=torch.long)
        column[order] = torch.arange(len(lengths))
        sizes = torch.tensor(lengths)
        text = torch.repeat_interleave(torch.arange(len(lengths)), sizes)  # (T,)
        starts = torch.tensor(inputs.layout.starts, dtype=torch.long)
        step = torch.arange(len(text)) - starts[text] + 1  # the begin of the text stands before
        places = torch.full((max(lengths, default=0) + 2, len(lengths)), BEGIN_ROW)
        places[sizes + 1, column] = END_ROW
        places[step, column[text]] = number.cpu() + 2
        device = spelled.device
        tokens, layers, _ = self.network(
            torch.cat([self.marks, spelled]),
            places.to(device),
            [lengths[text] + 2 for text in order],
        )
        stacked = self.network.stacked(tokens, layers).flatten(1, 2)  # (layers + 1, L * B, D)
        at = (step * len(lengths) + column[text]).to(device)
        return list(stacked.index_select(1, at))


class TableEncoder(nn.Module):
    """A vector per word, the same in every text; row 0, of unknown words, is 0."""

    def __init__(self, words: int, width: int) -> None:
        """`words` without the unknown one."""
        super().__init__()
        self.table = nn.Embedding(words + 1, width, padding_idx=0)

    def forward(self, inputs: Inputs) -> list[Tensor]:
        """T rows of inputs -> one layer (T, D)."""
        return [F.embedding(inputs.ids, self.table.weight)]


class WordModel(TextModel):
    """An encoder of words, with no heads and no decoder; its weights are never trained by tasks."""

    spec: WordShape

    def __init__(self, encoder: ElmoEncoder | TableEncoder) -> None:
        super().__init__()
        self.encoder: ElmoEncoder | TableEncoder = encoder
        self.decoder = None
        self.heads = nn.ModuleDict()
        if isinstance(encoder, ElmoEncoder):
            own = encoder.network.spec
            self.spec = WordShape(hidden=own.width, layers=own.layers, vocab_size=2)
        else:
            rows, width = encoder.table.weight.shape
            self.spec = WordShape(hidden=width, layers=0, vocab_size=rows)

    def forward(
        self,
        inputs: Inputs,
        *,
        rows: Tensor | None = None,
        want: Want = Want(),  # noqa: B008 - frozen
    ) -> Encoded:
        """T rows of inputs -> the last layer and, if they are wanted, all of them."""
        layers = self.encoder(inputs)
        hidden = layers[-1] if rows is None else layers[-1].index_select(0, rows)
        return Encoded(hidden=hidden, layers=tuple(layers) if want.layers else None)
