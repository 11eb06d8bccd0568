"""Bi-encoder head: scale * cosine + shift.

As sentence models are trained for similarity (Reimers and Gurevych 2019, arXiv:1908.10084).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

SCALE = 4.0  # numbers to learn have spread 1, the cosines of a sentence model about a quarter
MIDDLE = 0.5  # the cosine that begins as an average similarity


class CosineHead(nn.Module):
    """Vectors (2E, W) of E pairs, the two of each side by side -> (E, 1)."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor([SCALE]))
        self.shift = nn.Parameter(torch.tensor([-SCALE * MIDDLE]))

    def forward(self, vectors: Tensor) -> Tensor:
        """(2E, W) -> (E, 1)."""
        first, second = vectors[0::2].float(), vectors[1::2].float()
        cosine = F.cosine_similarity(first, second, dim=1, eps=1e-6)
        return (self.scale * cosine + self.shift)[:, None]
