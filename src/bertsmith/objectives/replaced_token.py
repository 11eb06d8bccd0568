"""Replaced token detection: a generator fills masks, the model tells what it changed.

ELECTRA, Clark et al. 2020, arXiv:2003.10555.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertsmith.corpus.rows import RowsBatch
from bertsmith.errors import ConfigError
from bertsmith.models.build import Model
from bertsmith.nn.loss import LossSum, binary_cross_entropy
from bertsmith.objectives.batch import Asked, Score
from bertsmith.objectives.masking.masking import Masked
from bertsmith.objectives.vocabulary import masked_lm_head, masked_lm_rows

SAMPLED_ROWS = 128  # rows whose distribution over the vocabulary is held at a time


@dataclass(frozen=True, slots=True)
class ReplacedToken:
    """Say of every real token whether it is the one that stood there."""

    name: ClassVar[str] = "rtd"
    weight: ClassVar[float] = 50.0
    head: ClassVar[str] = "replaced_token"
    pair: ClassVar[None] = None

    def own_head(self, model: Model, random: torch.Generator | None) -> nn.Module | None:
        """None: published models have this head."""
        return None

    def ask(self, rows: RowsBatch, masked: Masked) -> Asked:
        """Every real row; its target is the token that stood there."""
        at = np.flatnonzero(rows.real)
        return Asked(
            at=torch.from_numpy(at), targets=torch.from_numpy(rows.ids[at].astype(np.int64))
        )

    def loss(
        self, model: Model, own_head: nn.Module | None, hidden: Tensor, asked: Asked
    ) -> tuple[LossSum, Score]:
        """(rows, D) -> the loss over yes and no; `more` must hold what was `shown`."""
        replaced = asked.more["shown"] != asked.targets
        logits = model.logits(self.head, hidden[asked.at])
        correct = ((logits.detach() > 0) == replaced).sum()
        return binary_cross_entropy(logits, replaced), Score(correct, asked.count)


def baseline(asked: Asked) -> Score:
    """What a discriminator that always says "original" would reach."""
    return Score((asked.more["shown"] == asked.targets).sum(), asked.count)


def tie_embeddings(generator: Model, discriminator: Model) -> None:
    """Let two models use one token, position and segment embedding; projections stay their own."""
    ours, theirs = generator.encoder.embeddings, discriminator.encoder.embeddings
    shapes = [
        (spec.vocab_size, spec.embedding, spec.positions, spec.segments)
        for spec in (generator.spec, discriminator.spec)
    ]
    if shapes[0] != shapes[1]:
        raise ConfigError(
            "a generator must have the vocabulary, embedding width, positions and segments of its "
            f"discriminator: {shapes[0]} is not {shapes[1]}"
        )
    ours.tokens, ours.positions, ours.segments = theirs.tokens, theirs.positions, theirs.segments
    ours.norm = theirs.norm


@torch.no_grad()
def sampled(generator: Model, hidden: Tensor, chance: Tensor) -> Tensor:
    """A token for each row of the generator: (P, D), (P,) random numbers in [0, 1) -> (P,).

    The token at which the summed probabilities pass the row's number: an exact draw, with one
    number a row that does not depend on the batch.
    """
    weight, bias = generator.encoder.embeddings.tokens.weight, masked_lm_head(generator).bias
    rows = masked_lm_rows(generator, hidden.to(weight.dtype))
    found = []
    for start in range(0, len(rows), SAMPLED_ROWS):
        here = slice(start, start + SAMPLED_ROWS)
        logits = F.linear(rows[here], weight, bias).float()
        sums = logits.softmax(-1).cumsum(-1)  # (p, V)
        wanted = chance[here].to(sums.dtype)[:, None] * sums[:, -1:]
        found.append(torch.searchsorted(sums, wanted, right=True).flatten())
    if not found:
        return torch.zeros(0, dtype=torch.long, device=hidden.device)
    return torch.cat(found).clamp_(max=weight.shape[0] - 1)
