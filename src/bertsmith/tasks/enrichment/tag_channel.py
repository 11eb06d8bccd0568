"""SemBERT: tags of words as a channel next to the word vectors of an encoder.

Zhang et al. 2020 (AAAI, arXiv:1909.02209). The tags of each structure of a sentence are embedded
and read by a BiGRU, the structures joined by a linear layer; the pieces of a word become one vector
by a convolution and a maximum; both are put side by side. Windows never leave a word, so a word's
vector depends on its own text alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_sequence

from bertsmith.config import Settings

Size = Annotated[int, Field(gt=0)]
CHANNEL = "words_and_tags"  # in `Feature.channels`: (L, 1 + structures), word number, then tags
KERNEL = 3


class ChannelShape(Settings):
    """Numbers of tags (0: never seen) and of structures per text, and the width of an embedding."""

    tags: Size
    structures: Size = 1
    width: Size = 10


class TagChannel(nn.Module):
    """Rows of pieces and tags of words -> rows of words: (T, D), (T, 1 + S) -> (W, D + G)."""

    def __init__(self, shape: ChannelShape, hidden: int) -> None:
        super().__init__()
        self.shape = shape
        self.width = hidden + shape.width
        self.embedding = nn.Embedding(shape.tags, shape.width)
        self.gru = nn.GRU(shape.width, shape.width, bidirectional=True, batch_first=True)
        self.join = nn.Linear(2 * shape.width * shape.structures, shape.width)
        self.convolution = nn.Linear(KERNEL * hidden, hidden)

    def forward(
        self, hidden: Tensor, channel: Tensor, lengths: Sequence[int]
    ) -> tuple[Tensor, list[int]]:
        """Rows of words (W, D + G) of passages of these lengths, and the words of each passage."""
        word, first = words_of_rows(channel[:, 0], lengths)
        owners = torch.repeat_interleave(torch.tensor(lengths, device=first.device))
        counts = torch.bincount(owners[first], minlength=len(lengths)).tolist()
        tagged = self.tag_rows(channel.index_select(0, first)[:, 1:], counts)
        return torch.cat([self.word_rows(hidden, word), tagged], dim=1), counts

    def tag_rows(self, tags: Tensor, counts: Sequence[int]) -> Tensor:
        """Tags (W, S) of texts of so many words -> (W, G)."""
        rows = [
            one
            for part in self.embedding(tags).split(list(counts))  # (w, S, G)
            for one in part.unbind(1)
        ]
        read, _ = self.gru(pack_sequence(rows, enforce_sorted=False))
        structures = self.shape.structures
        every = _unpacked(read, [len(one) for one in rows])
        joined = [
            torch.cat(every[at : at + structures], dim=1) for at in range(0, len(every), structures)
        ]
        return self.join(torch.cat(joined))  # type: ignore[no-any-return]

    def word_rows(self, hidden: Tensor, word: Tensor) -> Tensor:
        """Rows (T, D) and the word of each -> the maximum over each word's windows (W, D).

        A word of n pieces has max(1, n - 2) windows; zeros fill those of shorter words.
        """
        one, two = hidden.new_zeros(1, hidden.shape[1]), hidden.new_zeros(2, hidden.shape[1])
        near = _same(word, 1)[:, None]
        far = _same(word, 2)[:, None]
        following = torch.cat([hidden[1:], one])[: len(hidden)] * near
        third = torch.cat([hidden[2:], two])[: len(hidden)] * far
        windows = torch.relu(self.convolution(torch.cat([hidden, following, third], dim=1)))
        opens = torch.ones_like(word, dtype=torch.bool)
        opens[1:] = word[1:] != word[:-1]
        windows = windows * (opens[:, None] | far)  # after ReLU 0 is the least there is
        words = int(word[-1]) + 1
        empty = windows.new_zeros(words, windows.shape[1])
        index = word[:, None].expand_as(windows)
        return empty.scatter_reduce(0, index, windows, "amax", include_self=False)


@torch.no_grad()
def draw_channel(channel: TagChannel, generator: torch.Generator | None) -> None:
    """Uniform weights by the number of inputs, as torch draws them, and embeddings of spread 1.

    Drawn like the encoder's (0.02), tags would hardly be heard next to the rows of words.
    """
    for name, weight in channel.named_parameters():
        if name.startswith("embedding."):
            weight.normal_(generator=generator)
        else:
            bound = (weight.shape[-1] if weight.dim() > 1 else channel.shape.width) ** -0.5
            weight.uniform_(-bound, bound, generator=generator)
        if "bias" in name:
            weight.zero_()


def words_of_rows(numbers: Tensor, lengths: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Word numbers (T,) within passages -> word of each row in the batch (T,), first rows (W,)."""
    owners = torch.repeat_interleave(torch.tensor(lengths, device=numbers.device))
    opens = torch.ones_like(numbers, dtype=torch.bool)
    opens[1:] = (numbers[1:] != numbers[:-1]) | (owners[1:] != owners[:-1])
    return opens.cumsum(0) - 1, opens.nonzero().squeeze(1)


def _same(word: Tensor, ahead: int) -> Tensor:
    """(T,) whether the row so many places ahead belongs to the same word."""
    same = torch.zeros_like(word, dtype=torch.bool)
    same[:-ahead] = word[ahead:] == word[:-ahead]
    return same


def _unpacked(packed: PackedSequence, sizes: Sequence[int]) -> list[Tensor]:
    padded, _ = nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
    return [padded[number, :size] for number, size in enumerate(sizes)]
