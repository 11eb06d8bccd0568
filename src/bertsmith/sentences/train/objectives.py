"""Training objectives of sentence vectors: columns of vectors in, one loss per row out.

A row is a pair, a triplet or more: `columns` are its texts' vectors, (N, D) each. Losses are those
of sentence-transformers for the same vectors: their mean over the rows is its loss.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from bertsmith.config import Positive, Settings
from bertsmith.errors import ConfigError
from bertsmith.folders.generation import LEAST_FACTOR, MOST_FACTOR

Distance = Literal["euclidean", "cosine", "manhattan"]

Temperature = Annotated[float, Field(ge=LEAST_FACTOR, le=MOST_FACTOR)]  # of a softmax


class VectorObjective(nn.Module, ABC):
    """What is minimized; `across` if the loss of a row depends on the other rows of its batch."""

    across = False

    @abstractmethod
    def forward(
        self, columns: Sequence[Tensor], targets: Tensor | None = None, keys: Tensor | None = None
    ) -> Tensor:
        """Columns (N, D), targets (N,), keys (N, columns), equal for equal texts -> losses (N,)."""


class SoftmaxSettings(Settings):
    """A linear classifier over (u, v, |u - v|) (SBERT, arXiv:1908.10084); not saved."""

    kind: Literal["softmax"] = "softmax"


class CosineSettings(Settings):
    """The squared error of the cosine against a score from 0 to 1 (SBERT, arXiv:1908.10084)."""

    kind: Literal["cosine"] = "cosine"


class TripletSettings(Settings):
    """max(d(anchor, positive) - d(anchor, negative) + margin, 0)."""

    kind: Literal["triplet"] = "triplet"
    distance: Distance = "euclidean"
    margin: Positive = 1.0  # SBERT; sentence-transformers has 5, which unit vectors never reach


class ContrastiveSettings(Settings):
    """Cross-entropy of each positive among all positives and negatives of the batch."""

    kind: Literal["contrastive"] = "contrastive"
    temperature: Temperature = 0.05  # 1 / temperature is the scale of sentence-transformers
    hard_negative_weight: Annotated[float, Field(allow_inf_nan=False)] = 0.0  # added to its logit


class SimCSESettings(ContrastiveSettings):
    """Contrast of a text with itself under another dropout mask, or of labeled pairs.

    `head`, a dense layer and tanh after the pooling, is used in training only, saved as a part of
    the model ("kept"), or left out (Gao et al. 2021, arXiv:2104.08821).
    """

    kind: Literal["simcse"] = "simcse"  # type: ignore[assignment]
    head: Literal["training", "kept", "none"] = "training"


class CosentSettings(Settings):
    """log(1 + sum of exp((cos_j - cos_i) / temperature) over pairs i that should score above j)."""

    kind: Literal["cosent"] = "cosent"
    temperature: Temperature = 0.05


ObjectiveSettings = Annotated[
    SoftmaxSettings
    | CosineSettings
    | TripletSettings
    | ContrastiveSettings
    | SimCSESettings
    | CosentSettings,
    Field(discriminator="kind"),
]


class Softmax(VectorObjective):
    """A class from (u, v, |u - v|)."""

    def __init__(self, width: int, classes: int, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.classifier = nn.Linear(3 * width, classes)
        bound = 1 / math.sqrt(3 * width)  # as torch initializes a linear layer
        with torch.no_grad():
            for weight in self.classifier.parameters():
                weight.uniform_(-bound, bound, generator=generator)

    def logits(self, first: Tensor, second: Tensor) -> Tensor:
        """(N, D), (N, D) -> (N, C)."""
        both = torch.cat([first, second, (first - second).abs()], dim=1)
        logits: Tensor = self.classifier(both)
        return logits

    def forward(
        self, columns: Sequence[Tensor], targets: Tensor | None = None, keys: Tensor | None = None
    ) -> Tensor:
        """Class numbers as targets."""
        logits = self.logits(columns[0].float(), columns[1].float())
        return F.cross_entropy(logits.float(), _needed(targets).long(), reduction="none")


class CosineRegression(VectorObjective):
    """The squared error of the cosine."""

    def forward(
        self, columns: Sequence[Tensor], targets: Tensor | None = None, keys: Tensor | None = None
    ) -> Tensor:
        """Scores from 0 to 1 as targets."""
        cosine = torch.cosine_similarity(columns[0].float(), columns[1].float())
        return (cosine - _needed(targets).float()) ** 2


class Triplet(VectorObjective):
    """A margin between two distances."""

    def __init__(self, distance: Distance, margin: float) -> None:
        super().__init__()
        self.distance = distance
        self.margin = margin

    def forward(
        self, columns: Sequence[Tensor], targets: Tensor | None = None, keys: Tensor | None = None
    ) -> Tensor:
        """Three columns: anchor, positive, negative."""
        anchor, positive, negative = (column.float() for column in columns)
        near = self._distances(anchor, positive)
        far = self._distances(anchor, negative)
        return F.relu(near - far + self.margin)

    def _distances(self, first: Tensor, second: Tensor) -> Tensor:
        if self.distance == "cosine":
            return 1 - paired_cosine(first, second)
        # The gradient of this norm at zero is zero; that of a root would be infinite.
        order = 2 if self.distance == "euclidean" else 1
        lengths: Tensor = torch.linalg.vector_norm(first - second, ord=order, dim=1)
        return lengths


class Contrastive(VectorObjective):
    """The positive of each anchor among the candidates of the whole batch."""

    across = True

    def __init__(self, temperature: float, hard_negative_weight: float = 0.0) -> None:
        super().__init__()
        self.temperature = temperature
        self.hard_negative_weight = hard_negative_weight

    def forward(
        self, columns: Sequence[Tensor], targets: Tensor | None = None, keys: Tensor | None = None
    ) -> Tensor:
        """Anchors, positives, then any number of columns of hard negatives."""
        rows = len(columns[0])
        anchors = F.normalize(columns[0].float(), dim=1)
        candidates = F.normalize(torch.cat([column.float() for column in columns[1:]]), dim=1)
        logits = anchors @ candidates.T / self.temperature  # (N, N (1 + h))
        if self.hard_negative_weight and len(columns) > 2:
            own = torch.eye(rows, device=logits.device).repeat(1, len(columns) - 1)
            own[:, :rows] = 0.0
            logits = logits + self.hard_negative_weight * own
        if keys is not None:
            logits = logits.masked_fill(false_negatives(keys), -torch.inf)
        return F.cross_entropy(logits, torch.arange(rows, device=logits.device), reduction="none")


def false_negatives(keys: Tensor) -> Tensor:
    """Which candidates are no negatives: keys (N, 1 + c) -> (N, N c).

    Those that equal the anchor or the positive of a row, and the positives of an equal anchor.
    """
    rows = len(keys)
    candidates = keys[:, 1:].T.reshape(-1)  # positives, then each column of negatives
    same = (keys[:, :1] == candidates) | (keys[:, 1:2] == candidates)
    same[:, :rows] |= keys[:, :1] == keys[:, 0]
    same[:, :rows] &= ~torch.eye(rows, dtype=torch.bool, device=keys.device)
    return same


class Cosent(VectorObjective):
    """One loss of all pairs of rows that are ranked wrongly; every row has the same."""

    across = True

    def __init__(self, temperature: float) -> None:
        super().__init__()
        self.temperature = temperature

    def forward(
        self, columns: Sequence[Tensor], targets: Tensor | None = None, keys: Tensor | None = None
    ) -> Tensor:
        """Scores of any scale as targets: only their order counts."""
        wanted = _needed(targets)
        scores = paired_cosine(columns[0].float(), columns[1].float()) / self.temperature
        gaps = scores[None, :] - scores[:, None]  # (i, j): how far j is above i
        ordered = wanted[:, None] > wanted[None, :]  # i should be above j
        terms = torch.cat([gaps.new_zeros(1), gaps[ordered]])
        return torch.logsumexp(terms, dim=0).expand(len(scores))


class Matryoshka(VectorObjective):
    """The sum of an objective over the first dimensions of the vectors, normalized each time.

    Vectors cut to any of the dimensions stay useful (Kusupati et al. 2022, arXiv:2205.13147).
    """

    def __init__(
        self, inner: Sequence[VectorObjective], dims: Sequence[int], weights: Sequence[float]
    ) -> None:
        super().__init__()
        self.inner = nn.ModuleList(inner)  # one per dimension; the same one if it has no weights
        self.dims = tuple(dims)
        self.weights = tuple(weights)
        self.across = inner[0].across

    def forward(
        self, columns: Sequence[Tensor], targets: Tensor | None = None, keys: Tensor | None = None
    ) -> Tensor:
        """As the inner objective."""
        total: Tensor | None = None
        for inner, width, weight in zip(self.inner, self.dims, self.weights, strict=True):
            cut = [F.normalize(column[:, :width].float(), dim=1) for column in columns]
            loss = weight * inner(cut, targets, keys)
            total = loss if total is None else total + loss
        if total is None:
            raise ConfigError("matryoshka.dims is empty")
        return total


def paired_cosine(first: Tensor, second: Tensor) -> Tensor:
    """(N, D), (N, D) -> (N,)."""
    return (F.normalize(first, dim=1) * F.normalize(second, dim=1)).sum(dim=1)


def build_objective(
    settings: ObjectiveSettings,
    *,
    width: int,
    classes: int = 0,
    generator: torch.Generator | None = None,
) -> VectorObjective:
    """The objective for vectors of this width; `classes` is for softmax."""
    if isinstance(settings, SoftmaxSettings):
        return Softmax(width, classes, generator)
    if isinstance(settings, CosineSettings):
        return CosineRegression()
    if isinstance(settings, TripletSettings):
        return Triplet(settings.distance, settings.margin)
    if isinstance(settings, CosentSettings):
        return Cosent(settings.temperature)
    return Contrastive(settings.temperature, settings.hard_negative_weight)


def build_matryoshka(
    settings: ObjectiveSettings,
    dims: Sequence[int],
    weights: Sequence[float] | None,
    *,
    width: int,
    classes: int = 0,
    generator: torch.Generator | None = None,
) -> Matryoshka:
    """The objective over each of these dimensions, the full width among them."""
    if width not in dims or max(dims) > width or len(set(dims)) < len(dims) or min(dims) < 1:
        raise ConfigError(
            f"matryoshka.dims {sorted(dims, reverse=True)}: give different numbers from 1 to "
            f"{width}, the width of the vectors, and {width} itself among them"
        )
    if weights is not None and len(weights) != len(dims):
        raise ConfigError(
            f"matryoshka has {len(dims)} dims and {len(weights)} weights; give one weight per "
            "dimension, or none"
        )
    inner = [
        build_objective(settings, width=dim, classes=classes, generator=generator) for dim in dims
    ]
    return Matryoshka(inner, dims, weights or [1.0] * len(dims))


def _needed(targets: Tensor | None) -> Tensor:
    if targets is None:
        raise ConfigError("this objective needs a score or a label per pair, and there is none")
    return targets
