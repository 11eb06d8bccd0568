"""Linear bag-of-tokens term that is added to the logits.

A vector of a few hundred numbers forgets names and terms that a label may hang on; a weight for
each token and label keeps them (wide and deep learning, Cheng et al. 2016, arXiv:1606.07792).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from bertsmith.tasks.batch import TaskBatch
from bertsmith.tasks.feature import Feature

FEWEST = 2  # texts that must have a token before it counts: one says too little
LENGTH = 10.0  # of every text's counts; long enough for weights to be learned at a head's rate


class WideFeatures(nn.Module):
    """Weights (V, C), 0 at first, on counts that are damped, weighted by rarity and normed.

    A token that a text has n times counts 1 + log n, times its rarity in the training texts. Each
    text's counts are then scaled to the same length, so that long ones do not speak louder.
    """

    rarity: Tensor  # (V,), 0: the token does not count

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
