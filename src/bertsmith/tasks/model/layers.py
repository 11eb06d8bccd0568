"""The layers that heads are made of: dense ones, the cosine of a pair, wide features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from bertsmith.config import Settings
from bertsmith.models.build import INIT_STD
from bertsmith.nn.feed_forward import find_activation
from bertsmith.tasks.batch import TaskBatch
from bertsmith.tasks.feature import Feature

Width = Annotated[int, Field(gt=0)]
SCALE = 4.0  # standardized targets have spread 1, cosines of a sentence model about a quarter
MIDDLE = 0.5  # the cosine that starts as the mean target
FEWEST = 2  # documents that must contain a token before it counts
LENGTH = 10.0  # the norm of every text's counts; enough to learn the weights at a head's rate


class HeadSettings(Settings):
    """A linear layer, after any number of dense ones.

    `samples` dropout masks are drawn for each example and their logits averaged (multi-sample
    dropout, Inoue 2019, arXiv:1905.09788). `meta` gives further columns of the data an embedding of
    that width, joined to the vector of the text. `wide` adds a linear bag-of-tokens term
    (`WideFeatures`) to the logits. `lstm` puts a bidirectional LSTM of that width per direction
    between the encoder and the head (the "+ BiLSTM" row of BERT's table 5).
    """

    layers: Annotated[tuple[Width, ...], Field(strict=False)] = ()
    activation: str = "tanh"
    batch_norm: bool = False
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1
    samples: Annotated[int, Field(gt=0)] = 1
    meta: Mapping[str, Width] = {}
    wide: bool = False
    lstm: Width | None = None

    @property
    def is_plain(self) -> bool:
        """Whether one linear layer is all, as in published classifiers."""
        further = self.layers or self.batch_norm or self.meta or self.wide or self.lstm
        return not further and self.samples == 1


class TextHead(nn.Module):
    """Vectors and the numbers of meta features -> logits: (E, W), (E, n) -> (E, C)."""

    def __init__(
        self, settings: HeadSettings, *, width: int, outputs: int, meta_sizes: Mapping[str, int]
    ) -> None:
        """`meta_sizes` is the number of values of each meta feature, unknown ones included."""
        super().__init__()
        self.settings = settings
        self.activation = find_activation(settings.activation)
        self.meta = nn.ModuleList(
            nn.Embedding(meta_sizes[name], size) for name, size in settings.meta.items()
        )
        width += sum(settings.meta.values())
        self.dense = nn.ModuleList()
        self.norms = nn.ModuleList()
        for size in settings.layers:
            self.dense.append(nn.Linear(width, size))
            if settings.batch_norm:
                self.norms.append(nn.BatchNorm1d(size))
            width = size
        self.output = nn.Linear(width, outputs)

    def forward(self, vectors: Tensor, meta: Tensor) -> Tensor:
        """(E, W), (E, n) -> (E, C)."""
        parts = [table(meta[:, number]) for number, table in enumerate(self.meta)]
        rows = torch.cat([vectors, *parts], dim=1) if parts else vectors
        for number, layer in enumerate(self.dense):
            rows = layer(F.dropout(rows, self.settings.dropout, self.training))
            if self.settings.batch_norm and not (self.training and len(rows) == 1):
                rows = self.norms[number](rows)  # a single row has no spread to norm by
            rows = self.activation(rows)
        samples = self.settings.samples if self.training else 1
        drawn = [
            self.output(F.dropout(rows, self.settings.dropout, self.training))
            for _ in range(samples)
        ]
        return drawn[0] if samples == 1 else torch.stack(drawn).mean(dim=0)


def draw_weights(head: nn.Module, generator: torch.Generator | None) -> None:
    """Matrices as the encoder's began, biases 0; norms keep the ones they were built with."""
    with torch.no_grad():
        for module in head.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                module.weight.normal_(0.0, INIT_STD, generator=generator)
            if isinstance(module, nn.Linear):
                module.bias.zero_()
            if isinstance(module, nn.LSTM):
                reach = module.hidden_size**-0.5  # as torch draws them, from this generator
                for weight in module.parameters():
                    weight.uniform_(-reach, reach, generator=generator)


class CosineHead(nn.Module):
    """Bi-encoder head, scale * cosine + shift (Reimers and Gurevych 2019, arXiv:1908.10084)."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor([SCALE]))
        self.shift = nn.Parameter(torch.tensor([-SCALE * MIDDLE]))

    def forward(self, vectors: Tensor) -> Tensor:
        """Vectors (2E, W) of E pairs, those of a pair adjacent -> (E, 1)."""
        first, second = vectors[0::2].float(), vectors[1::2].float()
        cosine = F.cosine_similarity(first, second, dim=1, eps=1e-6)
        return (self.scale * cosine + self.shift)[:, None]


class WideFeatures(nn.Module):
    """Linear bag-of-tokens term of the logits (wide and deep, Cheng et al. 2016, arXiv:1606.07792).

    Weights (V, C), 0 at first, on TF-IDF features: a token that occurs n times counts 1 + log n
    times its inverse document frequency, and each text's features have the same norm.
    """

    rarity: Tensor  # (V,) inverse document frequencies, 0: ignored

    def __init__(self, tokens: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(tokens, outputs))
        self.register_buffer("rarity", torch.zeros(tokens))

    @torch.no_grad()
    def learn_rarity(self, features: Sequence[Feature]) -> None:
        """log((1 + N) / (1 + n)) + 1 for a token in n of the N examples; special ones count 0."""
        seen: dict[int, set[int]] = {}
        for feature in features:
            encoding = feature.encoding
            seen.setdefault(feature.example, set()).update(
                encoding.ids[encoding.fields >= 0].tolist()
            )
        texts = np.zeros(len(self.rarity))
        for tokens in seen.values():
            texts[list(tokens)] += 1
        rarity = np.log((1 + len(seen)) / (1 + texts)) + 1
        rarity[texts < FEWEST] = 0.0
        self.rarity.copy_(torch.from_numpy(rarity))

    def forward(self, batch: TaskBatch, owners: Tensor, count: int) -> Tensor:
        """(count, C); `owners` (B,) says which of the `count` texts a passage belongs to."""
        lengths = torch.tensor(batch.layout.lengths, device=batch.ids.device)
        rows = owners.repeat_interleave(lengths)
        size = len(self.rarity)
        pairs: Tensor
        times: Tensor
        pairs, times = torch.unique(rows * size + batch.ids, return_counts=True)
        text, token = pairs.div(size, rounding_mode="floor"), pairs % size
        counts = (1.0 + times.log()) * self.rarity[token]
        squares = counts.new_zeros(count).index_add(0, text, counts.square())
        counts = counts * (LENGTH * squares.clamp_min(1e-12).rsqrt())[text]
        terms = counts[:, None] * self.weight[token]
        return terms.new_zeros(count, terms.shape[1]).index_add(0, text, terms)
